"""Decide whether the node can do without a unit or container, from what surrounds it."""
