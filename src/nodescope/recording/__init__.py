"""The one typed way to read a recording: rows, state, events, cores, samples, coverage."""
