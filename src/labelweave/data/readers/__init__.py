"""Readers, one module a format; :func:`labelweave.data.reading.read_dataset` chooses."""
