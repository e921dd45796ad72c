"""What docs/architecture.md draws and names is what the code is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"


def test_the_drawing_of_the_house_is_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "house"), "--check", str(PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_home_that_is_named_exists() -> None:
    """A path without a folder stands beside the one named before it in its row."""
    missing = []
    for row in PAGE.read_text().splitlines():
        folder = Path()
        for name in re.findall(r"`([\w/.*-]+\.(?:py|toml)|[\w/]+/)", row) if row[:1] == "|" else ():
            beside = folder / name
            path = beside if "/" not in name else Path(name)
            folder = path if name.endswith("/") else path.parent
            base = ROOT if name.startswith(("tests/", "ui/")) else ROOT / "src" / "nodescope"
            if "COMMAND" not in name and not list(base.glob(str(path))):
                missing.append(name)
    assert missing == []
