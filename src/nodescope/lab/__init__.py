"""Real incidents in an isolated environment, each with its known truth."""
