"""Sections of the report on a benchmark run: each module holds its numbers, plot and text."""
