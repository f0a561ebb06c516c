"""Networks that several methods of this room share."""
