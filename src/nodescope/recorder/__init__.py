"""The recording loop: drains samples, runs the observers, writes the archive."""
