"""The kernel's log: its records, its clock, and what its messages mean."""
