"""What Nodescope costs and how it compares: `make bench` writes RESULTS.md."""
