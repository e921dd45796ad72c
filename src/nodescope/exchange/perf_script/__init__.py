"""`perf script` text."""
