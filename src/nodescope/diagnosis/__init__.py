"""What went wrong and why: symptoms, links and chains of evidence, from a recording alone."""
