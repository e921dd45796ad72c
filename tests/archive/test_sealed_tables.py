"""What sealing needs of its libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SEAL = """
import sys
from pathlib import Path
from tests.analysis.conftest import SAMPLES, write_archive
from nodescope.archive import wide_paths
wide_paths.MANY = int(sys.argv[2])
(segment,) = write_archive(Path(sys.argv[1]), [SAMPLES]).segments()
assert ("paths" in segment.description.tables) is (wide_paths.MANY == 1)
print("pyarrow.compute" in sys.modules)
"""


@pytest.mark.parametrize("many", [1, 1 << 40])
def test_sealing_casts_nothing(tmp_path: Path, many: int) -> None:
    """A column of another type than declared imports `pyarrow.compute`: 9 MB, 30 ms."""
    command = [sys.executable, "-c", SEAL, str(tmp_path / "archive"), str(many)]
    root = Path(__file__).parents[2]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (result.stdout.strip(), result.stderr) == ("False", "")
