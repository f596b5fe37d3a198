"""The preset steps: small pure functions with their formula and story, and the faulty ones that break a rule."""
