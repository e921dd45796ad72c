"""One module per kind of answer: a question in, bytes out; no HTTP, no waiting."""
