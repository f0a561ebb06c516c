"""Measured figures beside published ones: tables, ranks and stored figures."""
