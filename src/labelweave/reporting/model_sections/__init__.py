"""Sections of the report on a model: each module holds its numbers, its plot and its text."""
