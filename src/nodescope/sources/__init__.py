"""Readers of the node: one module per kernel file, format or daemon."""
