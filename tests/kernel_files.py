"""Files as the kernel writes them, for tests that change them: a line of pressure, a folder."""

from __future__ import annotations

from pathlib import Path

PSI = (
    "some avg10=0.00 avg60=0.12 avg300=0.05 total={some}\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"
)


def write(folder: Path, files: dict[str, str]) -> None:
    """Files of a folder, by name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
