"""Nodescope: a flight recorder for Linux nodes."""

__version__ = "0.1.0"
