"""Limits of the kernel and how much of each is used, and counters that only trouble raises."""
