"""Sample batches, log lines and happenings become rows and events: one way in for everybody."""
