"""The recorder: the only place where sources meet the archive."""
