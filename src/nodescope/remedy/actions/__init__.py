"""Kinds of steps, one module each: check, read what is there, apply, undo, verify."""
