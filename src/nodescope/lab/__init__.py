"""Reproducing incidents, so that a diagnosis can be held against the truth."""
