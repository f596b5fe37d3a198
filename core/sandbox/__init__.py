"""Runs scripts that people paste: the step language, what it may name, and the walls around it."""
