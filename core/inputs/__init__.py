"""From what stands in a page's inputs (or in a link) to what is checked, and back from a repair to an input."""
