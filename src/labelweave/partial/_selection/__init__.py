"""What only the methods for partial labels need: selection of entries, estimates, losses."""
