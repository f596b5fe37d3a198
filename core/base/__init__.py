"""Words shared by all of core: places, types of leaves, violations, outcomes, results, limits, text."""
