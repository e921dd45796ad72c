"""Real incidents made in a closed place, each with the truth about it."""
