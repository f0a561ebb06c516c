"""The bench: run the tables of the papers, or your own data, and compare with what was published.

`suite` reads what to run, `running` runs it cell by cell, `storing` keeps the cells on disk, and
`comparing` makes tables and rankings of them.
"""
