"""How the catalog finds, downloads and loads its data sets."""
