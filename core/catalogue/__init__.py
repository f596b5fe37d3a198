"""The catalogue as people read it: an entry per code, made from the rule's docstring and its folder of examples."""
