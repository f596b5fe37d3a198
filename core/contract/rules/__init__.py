"""One file, one rule, one code. A file that defines `RULE` is found by itself; see CONTRIBUTING.md."""
