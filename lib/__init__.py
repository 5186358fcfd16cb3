"""Litmus: literate diagnostics of what language models know about syntax and sense.

Everything is one of two operations on a model: *fill* (a distribution at one gap) or *score* (log-probabilities of the
tokens of a whole string). A diagnostic is then: items, fill or score, metric, interval, chart.
"""

import csv

csv.field_size_limit(2**31 - 1)  # a cell may be as long as its file: Python's own limit is 131,072 characters
