"""Layouts of image data sets on disk, one module each."""
