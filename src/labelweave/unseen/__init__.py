"""Methods for unseen labels, which have a name but no training example: one file per method."""
