"""The bench: published tables as suites that can be run, resumed, shared and compared."""
