"""Control groups: where they are mounted, what they use, who makes and removes them."""
