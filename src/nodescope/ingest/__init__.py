"""Sample batches, log lines and happenings become rows and events, in one place for everybody."""
