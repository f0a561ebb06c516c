"""The plots of a report: numbers in, SVG out; one file a kind of plot."""
