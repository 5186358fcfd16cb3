"""From an executed notebook to one page that needs nothing else: ``python -m lib.report reports/MODEL/NOTEBOOK.ipynb``.

The page holds its style, its script, one copy of Vega-Lite (only where there is a chart) and all pictures. It opens
from a file with the network off. What a notebook shows comes from item files, model names and tracebacks, so nothing of
it is trusted: HTML is cleaned after Markdown has been turned into it, everything else is escaped, and the page's own
policy lets the browser run no script but ours and fetch nothing at all. The numbers behind it and the notebook travel in
the page, as far as it stays small, so that a page that is sent to someone is whole. Readers see plain words where tables
carry names of code (``template/words.csv``); what they download keeps the names.
"""
