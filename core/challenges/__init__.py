"""Challenges: predict what a program gives, mend a broken one, tell the wrong one of two. The texts are data."""
