"""Prove whether a remedy worked: the time before a plan against the time after; forecasts."""
