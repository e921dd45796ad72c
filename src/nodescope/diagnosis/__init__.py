"""From a recording alone: what went wrong, and why, as chains of evidence."""
