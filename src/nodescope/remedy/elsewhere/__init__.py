"""The same change as a plan's, written for other places: images, configuration, a fleet."""
