"""Logs as text: kernel logs and journals."""
