"""Readers of what the node tells: one module per kernel file, format or daemon."""
