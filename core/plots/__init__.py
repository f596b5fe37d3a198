"""Results -> what is drawn: plotly figures as plain dicts, the player's data, words and tables."""
