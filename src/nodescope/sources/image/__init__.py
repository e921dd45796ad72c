"""An image that does not run, by its files alone: packages, and what starts without a unit file."""
