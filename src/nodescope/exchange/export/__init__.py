"""Recordings in other tools' formats. Each exporter reads segment by segment and streams."""
