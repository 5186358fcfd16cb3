"""Litmus: literate diagnostics of what language models know about syntax and sense.

Everything is one of two operations on a model: *fill* (a distribution at one gap) or *score* (log-probabilities of the
tokens of a whole string). A diagnostic is then: items, fill or score, metric, interval, chart.
"""
