"""Baselines: a small set of cases of a page's state, recorded once and compared later, elsewhere, or on other versions."""
