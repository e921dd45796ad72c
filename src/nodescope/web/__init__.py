"""The page's server: a read-only HTTP API over one recording, and the page's files."""
