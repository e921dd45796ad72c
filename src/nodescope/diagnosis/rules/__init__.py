"""The rules of a diagnosis: mechanisms and suspects as data, and how sure a chain may be."""
