"""Explain what went wrong: symptoms, links and chains of evidence, from a recording alone."""
