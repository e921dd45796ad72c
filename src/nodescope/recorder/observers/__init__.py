"""One module per observer of the node; `catalogue` lists them."""
