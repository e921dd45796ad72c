"""Turn samples, log lines and observations into rows and events: live, imported and in the lab."""
