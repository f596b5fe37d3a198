"""The contract report: what was run, what was promised of it, and which of the promises held, with their numbers."""
