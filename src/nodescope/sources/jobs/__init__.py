"""Jobs that ran on the node, as their schedulers report them."""
