"""The parts of the ARFF reader."""
