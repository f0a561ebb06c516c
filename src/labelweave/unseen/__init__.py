"""Labels with a name and no training example: one file a method."""
