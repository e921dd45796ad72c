"""The facts that a plan rests on: read when it is made, and again before its first step."""
