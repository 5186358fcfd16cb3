"""Every notebook for every model, and the index that compares them: what ``make reports`` calls.

Snakemake runs the grid (``reports/Snakefile``): one failing notebook never hides another, and a second call runs only
what is missing or stale. What is stale is decided by content (``lib.grid.marks``): a result is kept while its executed
notebook carries the mark of the same sources, items, model and settings.
"""
