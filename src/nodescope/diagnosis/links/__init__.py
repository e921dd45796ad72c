"""Links of a chain: small functions from one piece of evidence to the next."""
