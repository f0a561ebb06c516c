"""The numbers behind the plots and tables of a report, as pure functions."""
