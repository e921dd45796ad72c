"""A diagnosis as text, HTML, JSON and pictures."""
