"""Pure functions on columns: flame graphs, heatmaps, comparisons, statistics."""
