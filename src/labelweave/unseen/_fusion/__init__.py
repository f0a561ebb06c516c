"""What several methods for unseen labels share."""
