from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Nodescope
from tests.sources.memory_cgroups.making import Nursery, nursery, v1_mount
from tests.sources.memory_cgroups.trees import PAGE, V1Tree, V2Tree, put
from tests.waiting import wait_for

from nodescope.sources.memory_cgroups.file_systems import find_file_system

# Everything is imported before: nobody may not read where Python is installed.
AS_NOBODY = """
import contextlib, io, os
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    nodescope.cli.main.main(["zombies", "--json"])
    nodescope.cli.main.main(["zombies", "--files", "/proc/self/fdinfo"])
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
sys.exit(nodescope.cli.main.main())
"""
SLACK = 20
KEYS = {"version", "tracked", "visible", "dying", "parents", "verdict"}


def _hybrid(root: Path, dying: int) -> V1Tree:
    tree = V1Tree(root)
    tree.group("/", {}, {"cache": dying * PAGE, "shmem": dying * PAGE})
    tree.group("/pods", {}, {"cache": dying * PAGE, "shmem": dying * PAGE})
    tree.track(dying)
    return tree


def test_json_of_a_node_past_the_first_threshold(nodescope: Nodescope, tmp_path: Path) -> None:
    _hybrid(tmp_path, 5_000)
    result = nodescope("zombies", "--root", tmp_path, "--json")
    assert result.code == 1
    document = json.loads(result.out)
    assert set(document) >= KEYS
    assert {key: document[key] for key in KEYS - {"parents"}} == {
        "version": "hybrid",
        "tracked": 5_002,
        "visible": 2,
        "dying": 5_000,
        "verdict": "warn",
    }
    (parent,) = document["parents"]
    assert (parent["path"], parent["dying"]) == ("/pods", 5_000)
    assert parent["held"] == {"shmem": 5_000 * PAGE}
    assert document["trend"]["change"] == 0
    assert document["trend"]["per_hour_since_boot"] == 5_000


def test_text_of_a_node_past_the_first_threshold(nodescope: Nodescope, tmp_path: Path) -> None:
    _hybrid(tmp_path, 5_000)
    result = nodescope("zombies", "--root", tmp_path)
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0].startswith("WARN: 5,000 dying memory cgroups")
    assert "tracked 5,002, visible 2, dying 5,000   (hybrid, memory on cgroup v1" in result.out
    assert "≈5,000  /pods  tmpfs 19.5 MiB" in result.out
    assert "delete the tmpfs files that pin them" in result.out
    assert "drop_caches, force_empty and reclaim free none that tmpfs pins" in result.out


def test_a_healthy_node_with_a_few_is_not_told_to_drop_its_caches(
    nodescope: Nodescope, tmp_path: Path
) -> None:
    """Issue 13, point 15."""
    _hybrid(tmp_path, 500)
    result = nodescope("zombies", "--root", tmp_path)
    assert result.code == 0
    assert result.out.startswith("HEALTHY: 500 dying memory cgroups")
    assert "/pods" in result.out
    assert "drop_caches" not in result.out
    assert "What frees them" not in result.out


def test_a_healthy_node(nodescope: Nodescope, tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    tree.group("/", visible=12, dying=0)
    result = nodescope("zombies", "--root", tmp_path)
    assert result.code == 0
    assert result.out.startswith("HEALTHY: none")
    document = json.loads(nodescope("zombies", "--root", tmp_path, "--json").out)
    assert (document["version"], document["verdict"]) == ("v2", "healthy")
    assert document["parents"] == document["advice"] == []


def test_critical_on_v2_says_how_to_reclaim(nodescope: Nodescope, tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    tree.group("/", visible=1, dying=12_000)
    tree.group("/kubepods.slice", visible=0, dying=12_000, held={"file": 12_000 * PAGE})
    result = nodescope("zombies", "--root", tmp_path, "--parents")
    assert result.code == 1
    assert result.out.startswith("CRITICAL: 12,000 dying")
    assert f"echo {12_000 * PAGE} > {tree.mount}/kubepods.slice/memory.reclaim" in result.out
    assert "≈:" not in result.out  # v2 counts them


def test_names_cannot_steer_the_terminal(nodescope: Nodescope, tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    tree.group("/", {}, {"cache": 9_000 * PAGE})
    tree.group("/\x1b[31mred", {}, {"cache": 9_000 * PAGE})
    tree.track(9_000)
    result = nodescope("zombies", "--root", tmp_path)
    assert "\x1b" not in result.out
    assert "\\x1b[31mred" in result.out


def test_a_part_of_the_hierarchy_cannot_tell(nodescope: Nodescope, tmp_path: Path) -> None:
    tree = _hybrid(tmp_path, 5_000)
    (tree.mount / "cgroup.sane_behavior").unlink()
    result = nodescope("zombies", "--root", tmp_path)
    assert result.code == 2
    assert "only a part of the hierarchy" in result.out


def test_no_memory_controller_is_an_error_with_a_hint(nodescope: Nodescope, tmp_path: Path) -> None:
    put(tmp_path / "proc/self/mounts", "overlay / overlay rw 0 0\n")
    result = nodescope("zombies", "--root", tmp_path)
    assert result.code == 2
    assert "memory controller" in result.err
    assert "hint:" in result.err


def test_a_trend_needs_a_recording(nodescope: Nodescope, tmp_path: Path) -> None:
    _hybrid(tmp_path / "node", 5)
    absent = tmp_path / "absent"
    result = nodescope("zombies", "--root", tmp_path / "node", "--trend", "--archive", absent)
    assert result.code == 2
    assert "no such archive" in result.err


# -- on this machine -------------------------------------------------------

needs_v1 = pytest.mark.skipif(v1_mount() is None, reason="memory is not on cgroup v1 here")


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder on tmpfs that does not exist yet."""
    folder = Path("/dev/shm") / f"nodescope-zombies-{uuid.uuid4().hex[:8]}"
    if not os.path.ismount("/dev/shm"):
        pytest.skip("needs tmpfs at /dev/shm")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """A folder on a disk that does not exist yet."""
    for place in (tmp_path, Path("/var/tmp")):
        if not find_file_system(place).in_memory:
            return place / f"nodescope-zombies-{uuid.uuid4().hex[:8]}"
    pytest.skip("needs a folder that is not in memory")


def _look(nodescope: Nodescope, *arguments: str | Path) -> dict[str, Any]:
    result = nodescope("zombies", "--json", *arguments)
    assert result.code in (0, 1), result.err
    document: dict[str, Any] = json.loads(result.out)
    return document


def _parent(document: dict[str, Any], path: str) -> dict[str, Any]:
    return next((each for each in document["parents"] if each["path"] == path), {})


def _counts(nodescope: Nodescope, made: Nursery, kind: str, count: int) -> dict[str, Any]:
    """Wait until a look shows it: counters of the kernel lag by seconds."""

    def seen() -> dict[str, Any]:
        document = _look(nodescope)
        parent = _parent(document, made.path)
        enough = parent.get("held", {}).get(kind, 0) >= count * PAGE
        return document if enough and abs(parent["dying"] - count) <= SLACK else {}

    return wait_for(seen, f"{count} held by {kind} under {made.path}")


@pytest.mark.live
@pytest.mark.root
@needs_v1
def test_real_ones_are_counted_named_and_gone_when_advice_is_followed(
    nodescope: Nodescope, in_memory: Path, on_disk: Path
) -> None:
    mount = v1_mount()
    assert mount is not None
    with (
        nursery(mount, "nodescope-shmem", in_memory) as shmem,
        nursery(mount, "nodescope-cache", on_disk) as cache,
    ):
        shmem.make(500)
        cache.make(100)
        document = _counts(nodescope, shmem, "shmem", 500)
        assert document["version"] in ("v1", "hybrid")
        assert document["dying"] >= 500
        assert document["tracked"] - document["visible"] == document["dying"]
        document = _counts(nodescope, cache, "file", 100)
        parent = _parent(document, cache.path)
        assert "shmem" not in parent["held"]
        assert parent["known"] == "estimate"
        assert parent["least"] <= 100 <= parent["most"]

        # A page that the kernel moves while it is looked up is missed by that look.
        wait_for(
            lambda: _names(nodescope, shmem) >= {f"{in_memory}/file-{n}" for n in range(500)},
            "every file in memory is named",
        )
        wait_for(
            lambda: _names(nodescope, cache) & {f"{on_disk}/file-{n}" for n in range(100)},
            "files on disk are named",
        )

        shutil.rmtree(in_memory)
        wait_for(lambda: _are_gone(nodescope, shmem, 500), "those of tmpfs are gone")
        wait_for(lambda: _are_gone(nodescope, cache, 100), "those of page cache are gone")


@pytest.mark.live
@pytest.mark.root
@needs_v1
def test_a_live_parent_with_much_memory_of_its_own_takes_none_away(
    nodescope: Nodescope, in_memory: Path, on_disk: Path
) -> None:
    mount = v1_mount()
    assert mount is not None
    held = on_disk.with_name(f"{on_disk.name}-live")
    with (
        nursery(mount, "nodescope-shmem", in_memory) as shmem,
        nursery(mount, "nodescope-cache", on_disk) as cache,
        nursery(mount, "nodescope-live", held) as live,
    ):
        live.make(200)  # a pile that was there once
        live.forget()
        with live.reading(256 << 20):
            shmem.make(400)
            cache.make(80)
            _counts(nodescope, shmem, "shmem", 400)
            _counts(nodescope, cache, "file", 80)


def _names(nodescope: Nodescope, made: Nursery) -> set[str]:
    files = _look(nodescope, "--files", made.folder)["files"]
    return {each["path"] for each in files if each["parent"] == made.path}


def _are_gone(nodescope: Nodescope, made: Nursery, count: int) -> bool:
    made.empty()
    parent = _parent(_look(nodescope), made.path)
    return not parent or sum(parent["held"].values()) < 0.1 * count * PAGE


@pytest.mark.live
@pytest.mark.root
@needs_v1
def test_a_deleted_file_held_open_is_found_with_its_holder(
    nodescope: Nodescope, in_memory: Path
) -> None:
    mount = v1_mount()
    assert mount is not None
    with nursery(mount, "nodescope-open", in_memory) as made:
        made.make(30)
        with ExitStack() as held:
            for number in range(30):
                held.enter_context((in_memory / f"file-{number}").open("rb"))
            shutil.rmtree(in_memory)
            expected = {f"{in_memory}/file-{number}" for number in range(30)}

            def found() -> list[dict[str, Any]]:
                files = _look(nodescope, "--files", "/dev/shm")["files"]
                mine = [each for each in files if each["parent"] == made.path]
                return mine if {each["path"] for each in mine} == expected else []

            mine = wait_for(found, "every deleted file is named")
        assert {(each["kind"], each["pid"]) for each in mine} == {("deleted", os.getpid())}


@pytest.mark.live
@pytest.mark.root
@needs_v1
def test_the_maker_is_named(nodescope: Nodescope, in_memory: Path) -> None:
    mount = v1_mount()
    assert mount is not None
    with nursery(mount, "nodescope-maker", in_memory) as made, made.making(0.05) as process:

        def named() -> dict[str, Any]:
            watch = _look(nodescope, "--watch", "2s")["watch"]
            if watch["way"] == "scan":
                pytest.skip("tracepoints are not to be had here")
            ours = [each for each in watch["makers"] if each["parent"] == made.path]
            return next((each for each in ours if each["unreleased"]), {})

        maker = wait_for(named, "a maker under our parent")
        assert maker["pattern"] == "run-*"
        assert maker["maker"] == made.path.strip("/")[:15]
        assert maker["pids"] == [process.pid]


@pytest.mark.live
@pytest.mark.root
@needs_v1
def test_the_page_scan_finds_what_they_hold(nodescope: Nodescope, in_memory: Path) -> None:
    if not os.path.exists("/proc/kpagecgroup"):
        pytest.skip("this kernel tells no owners of pages")
    mount = v1_mount()
    assert mount is not None
    with nursery(mount, "nodescope-pages", in_memory) as made:
        made.make(200)

        def scanned() -> bool:
            scan = _look(nodescope, "--pages", "all")["pages"]
            assert scan["one_in"] == 1
            return bool(scan["bytes"].get(made.path, {}).get("shmem", 0) >= 190 * PAGE)

        wait_for(scanned, "pages that 200 dying ones hold")
        sampled = _look(nodescope, "--pages")["pages"]
        assert sampled["one_in"] == 16


@pytest.mark.live
@pytest.mark.root
def test_an_unprivileged_user_may_look(nodescope_process: Nodescope) -> None:
    if v1_mount() is None and not os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        pytest.skip("no memory controller here")
    result = nodescope_process("zombies", "--json", wrapper=AS_NOBODY)
    assert result.code in (0, 1), result.err
    assert set(json.loads(result.out)) >= KEYS
    refused = nodescope_process("zombies", "--files", wrapper=AS_NOBODY)
    assert refused.code == 2
    assert "kpagecgroup" in refused.err


def test_it_needs_neither_numpy_nor_arrow(nodescope_process: Nodescope, tmp_path: Path) -> None:
    _hybrid(tmp_path, 3)
    check = (
        "code = nodescope.cli.main.main()\n"
        "print(sorted({'numpy', 'pyarrow', 'json.tool'} & set(sys.modules)), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    result = nodescope_process("zombies", "--root", tmp_path, wrapper=check)
    assert result.err.strip() == "[]"
