"""Profiles without times: folded stacks and pprof."""
