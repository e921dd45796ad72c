"""Turn proposed actions into the steps of a plan, one module per subject."""
