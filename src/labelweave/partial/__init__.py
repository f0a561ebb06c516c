"""Labels of which some positives were never annotated: one file per method."""
