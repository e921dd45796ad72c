"""Files of the node that a remedy changes: read exactly, changed whole, restored to the byte."""
