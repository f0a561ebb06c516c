"""The addresses of the service, one file a topic."""
