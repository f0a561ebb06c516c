"""Labels that are locked in several trained models: one file per method."""
