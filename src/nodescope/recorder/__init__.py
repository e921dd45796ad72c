"""The recording loop: drains samples, asks the node's observers, writes the archive."""
