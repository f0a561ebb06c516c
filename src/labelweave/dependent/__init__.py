"""Labels that are annotated in full and go together: one file per method."""
