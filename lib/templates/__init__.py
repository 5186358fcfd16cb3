"""Makers of test items from the lexicon in ``data/lexicon``; ``python -m lib.templates --help`` lists them."""
