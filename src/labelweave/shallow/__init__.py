"""What at least two packages share and that needs no network: trees, neighbours, regressions."""
