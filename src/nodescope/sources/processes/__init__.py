"""Processes: what they hold open, where they listen, how they end."""
