"""Views on a recording: numpy on columns; no reading, no printing."""
