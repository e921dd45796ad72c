"""`perf.data` files, read as columns without the `perf` binary."""
