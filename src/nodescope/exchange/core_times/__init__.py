"""Per-core time as sysstat prints it: `mpstat` and `sar`."""
