"""The contract of scan and cells: what was called (subject), what is known of it (facts), rules, fixes, engine."""
