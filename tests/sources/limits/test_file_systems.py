from __future__ import annotations

import shutil
from pathlib import Path

from tests.kernel_files import write

from nodescope.sources.limits.file_systems import (
    read_ext4_counts,
    read_ext4_function,
    read_space,
)
from nodescope.sources.limits.reading import TroubleCount


def test_space_is_as_df_has_it(tmp_path: Path) -> None:
    limits = {limit.name: limit for limit in read_space(str(tmp_path), "/here")}
    usage = shutil.disk_usage(tmp_path)
    disk = limits["disk"]
    assert disk.scope == "/here"
    assert disk.most is not None
    assert abs(disk.used - usage.used) < 1 << 28  # others write meanwhile
    assert abs(disk.most - disk.used - usage.free) < 1 << 28
    assert read_space(str(tmp_path / "gone"), "/gone") == []


def test_what_ext4_counts_of_each_device(tmp_path: Path) -> None:
    counts = {"errors_count": "3\n", "warning_count": "0\n", "last_error_func": "ext4_find\n"}
    write(tmp_path / "fs/ext4/sda1", counts)
    write(tmp_path / "fs/ext4/features", {"lazy_itable_init": "supported\n"})
    assert read_ext4_counts(tmp_path) == [
        TroubleCount("ext4_errors", "sda1", 3),
        TroubleCount("ext4_warnings", "sda1", 0),
    ]
    assert read_ext4_function(tmp_path, "sda1") == "ext4_find"
    assert read_ext4_function(tmp_path, "sdb1") is None
    assert read_ext4_counts(tmp_path / "none") == []
