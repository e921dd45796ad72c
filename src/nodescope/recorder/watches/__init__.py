"""Decisions the recorder makes while it records: pegged cores, starved cores, moved interrupts."""
