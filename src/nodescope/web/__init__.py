"""The page: an HTTP API over one recording, read-only, and the files of the page itself."""
