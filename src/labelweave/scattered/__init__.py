"""Labels that are locked in several trained models: one file a method."""
