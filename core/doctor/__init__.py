"""The Doctor: a whole script goes in, its shapes, its broken rules, their places and verified fixes come out."""
