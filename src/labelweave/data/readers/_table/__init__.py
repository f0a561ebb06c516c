"""The parts of the table reader."""
