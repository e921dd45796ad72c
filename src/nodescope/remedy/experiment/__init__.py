"""Experiments: mitigations across nodes, assigned at random, judged as the evidence comes."""
