"""Images as data: collections that are decoded when they are asked for."""
