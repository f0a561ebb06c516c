"""The state of the service in a database: label changes, review verdicts and API keys."""
