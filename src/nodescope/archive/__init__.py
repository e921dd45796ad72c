"""Recordings on disk: segments that are written, sealed, kept, bundled and read.

`writer` is the write side, `reader` the read side; neither imports the other, and
nothing is imported here: a view should not wait for what only a recorder needs.
"""
