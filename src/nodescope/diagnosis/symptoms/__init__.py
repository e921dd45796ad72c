"""Symptoms: what went wrong, which of it is one incident, and whether it recurs."""
