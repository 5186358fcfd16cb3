"""Every result there is, side by side: what ``90_compare_models``, the index of the reports, is made of."""
