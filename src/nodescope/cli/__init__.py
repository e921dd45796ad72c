"""The command line: one module per command, which parses, asks and renders."""
