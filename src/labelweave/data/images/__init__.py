"""Images as data: collections that decode their images on demand."""
