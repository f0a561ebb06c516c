"""Neural parts: encoders, losses, and the one training loop that every neural method uses."""
