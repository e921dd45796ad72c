"""Samples and core times on their way from the kernel to the archive."""
