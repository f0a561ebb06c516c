"""What the methods over several teachers share."""
