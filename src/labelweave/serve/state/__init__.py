"""What the service remembers: label changes, review verdicts, API keys. It lives in a database."""
