from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.remedy.killed import die, run_killed
from tests.remedy.node_state import differences, read_tree

from nodescope.errors import RemedyError
from nodescope.records.json import Json
from nodescope.remedy.files.file_changes import (
    capture_changes,
    make_changes,
    parse_changes,
    restore_changes,
    where_stands,
)
from nodescope.remedy.files.file_state import ABSENT, FileState, parse_state
from nodescope.remedy.files.node_files import NodeFiles

_HOME = "/etc/systemd/system"
_LINK = FileState("link", b"/dev/null", 0o777)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "etc/systemd/system"
    (folder / "multi-user.target.wants").mkdir(parents=True)
    link = folder / "multi-user.target.wants/a.service"
    link.symlink_to("/usr/lib/systemd/system/a.service")
    os.utime(link, ns=(1, 1_234_567_891), follow_symlinks=False)
    (folder / "b.conf").write_bytes(b"\xff\0 odd\n")
    (folder / "b.conf").chmod(0o640)
    os.utime(folder, ns=(5, 99_000_000_001))
    return tmp_path


def _wanted() -> dict[str, FileState]:
    return {
        f"{_HOME}/multi-user.target.wants/a.service": ABSENT,
        f"{_HOME}/c.service": _LINK,
        f"{_HOME}/c.service.d/x.conf": FileState("file", b"[Unit]\n", 0o644),
        f"{_HOME}/b.conf": FileState("file", b"other", 0o600),
        "/etc/systemd/system.control/c.service.d/y.conf": FileState("file", b"y", 0o644),
    }


def test_changes_are_made_and_restored_to_the_byte(root: Path) -> None:
    before = read_tree(root, "etc")
    files = NodeFiles(root)
    captured = capture_changes(files, _wanted())
    assert parse_changes(captured.to_json()) == captured
    assert where_stands(files, captured) == "before"
    make_changes(files, captured)
    assert where_stands(files, captured) == "after"
    assert os.readlink(root / "etc/systemd/system/c.service") == "/dev/null"
    assert not (root / "etc/systemd/system/multi-user.target.wants/a.service").is_symlink()
    make_changes(files, captured)  # again changes nothing
    undone = restore_changes(files, captured)
    assert not undone.left_alone
    assert differences(before, read_tree(root, "etc")) == {}
    assert restore_changes(files, captured).left_alone == ()
    assert differences(before, read_tree(root, "etc")) == {}


@pytest.mark.root
def test_owners_and_attributes_come_back(root: Path) -> None:
    link = root / "etc/systemd/system/multi-user.target.wants/a.service"
    os.chown(link, 12, 34, follow_symlinks=False)
    try:
        os.setxattr(link, "trusted.label", b"\0x", follow_symlinks=False)
        os.setxattr(root / "etc/systemd/system/b.conf", "user.label", b"y")
    except OSError as error:
        pytest.skip(f"this file system has no such attributes: {error}")
    before = read_tree(root, "etc")
    files = NodeFiles(root)
    captured = parse_changes(capture_changes(files, _wanted()).to_json())
    make_changes(files, captured)
    restore_changes(files, captured)
    assert differences(before, read_tree(root, "etc")) == {}


@pytest.mark.parametrize("call", range(1, 24))
def test_a_kill_within_the_changes_leaves_what_can_be_finished_or_restored(
    root: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies at the n-th call that changes a file system."""
    before = read_tree(root, "etc")
    files = NodeFiles(root)
    captured = capture_changes(files, _wanted())

    def run_until_killed(run: Callable[[], object]) -> bool:
        def run_counted() -> None:
            left = call
            for name in ("symlink", "rename", "unlink", "mkdir", "rmdir", "utime", "fsync"):
                original = getattr(os, name)

                def counted(
                    *args: object, _call: Callable[..., object] = original, **more: object
                ) -> object:
                    nonlocal left
                    left -= 1
                    if not left:
                        die()
                    return _call(*args, **more)

                setattr(os, name, counted)
            run()

        return run_killed(run_counted)

    killed = run_until_killed(lambda: make_changes(files, captured))
    if killed:
        assert where_stands(files, captured) in ("before", "between", "after")
        make_changes(files, captured)
    assert where_stands(files, captured) == "after"
    run_until_killed(lambda: restore_changes(files, captured))
    assert not restore_changes(files, captured).left_alone
    assert differences(before, read_tree(root, "etc")) == {}


def test_what_somebody_else_changed_stays(root: Path) -> None:
    files = NodeFiles(root)
    captured = capture_changes(files, _wanted())
    make_changes(files, captured)
    (root / "etc/systemd/system/c.service.d/theirs.conf").write_text("theirs")
    (root / "etc/systemd/system/b.conf").write_text("theirs")
    undone = restore_changes(files, captured)
    assert (root / "etc/systemd/system/b.conf").read_text() == "theirs"
    assert (root / "etc/systemd/system/c.service.d/theirs.conf").exists()
    assert not (root / "etc/systemd/system/c.service.d/x.conf").exists()
    said = "\n".join(undone.left_alone)
    assert "b.conf: somebody changed it since" in said
    assert "c.service.d: somebody put theirs.conf there" in said
    assert f"{_HOME}/multi-user.target.wants/a.service" in undone.restored


def test_what_changed_between_plan_and_step_is_not_overwritten(root: Path) -> None:
    files = NodeFiles(root)
    captured = capture_changes(files, _wanted())
    (root / "etc/systemd/system/c.service").write_text("somebody's own")
    with pytest.raises(RemedyError, match="changed by somebody else"):
        make_changes(files, captured)
    assert where_stands(files, captured) == "other"
    assert (root / "etc/systemd/system/c.service").read_text() == "somebody's own"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "/usr/lib/systemd/system/a.service", "/etc/systemd/systemx/a",
        "/etc/systemd/system/../../passwd", "/etc/systemd/system//a", "/etc/systemd/system/.",
        "/etc/systemd/system/a\nb", "/etc/systemd/system/a\x7f", "/etc/systemd/system/" + "a" * 256,
        "etc/systemd/system/a", "/etc/systemd/system/", "/etc/systemd",
    ],
)  # fmt: skip
def test_a_path_outside_the_folders_of_units_is_refused(root: Path, path: str) -> None:
    before = read_tree(root, "etc")
    with pytest.raises(RemedyError):
        NodeFiles(root).put(path, _LINK)
    with pytest.raises(RemedyError):
        NodeFiles(root).remove(path)
    assert differences(before, read_tree(root, "etc")) == {}


@pytest.mark.parametrize("level", ["etc", "etc/systemd", "etc/systemd/system/a.service.d"])
def test_a_link_on_the_way_is_not_followed(root: Path, tmp_path: Path, level: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    place = root / level
    if place.exists():
        place.rename(elsewhere)
    else:
        elsewhere.mkdir()
    place.symlink_to(elsewhere)
    before = read_tree(tmp_path, "elsewhere")
    files = NodeFiles(root)
    path = f"{_HOME}/a.service.d/x.conf"
    for touch in (
        lambda: files.put(path, FileState("file", b"x")),
        lambda: files.read(path),
        lambda: files.make_folder(f"{_HOME}/a.service.d"),
        lambda: capture_changes(files, {path: FileState("file", b"x")}),
    ):
        with pytest.raises(RemedyError) as refused:
            touch()
        assert refused.value.hint is not None
        assert "link" in refused.value.hint
    assert differences(before, read_tree(tmp_path, "elsewhere")) == {}


def test_a_link_in_place_of_a_file_is_replaced_not_written_through(root: Path) -> None:
    target = root / "target"
    target.write_text("keep")
    (root / "etc/systemd/system/x.conf").symlink_to(target)
    NodeFiles(root).put(f"{_HOME}/x.conf", FileState("file", b"new", 0o644))
    assert target.read_text() == "keep"
    assert (root / "etc/systemd/system/x.conf").read_bytes() == b"new"


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS])
def test_a_denied_write_leaves_nothing_behind(
    root: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_tree(root, "etc")

    def refuse(*_args: object, **_more: object) -> None:
        raise OSError(code, os.strerror(code))

    files = NodeFiles(root)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", refuse)
        with pytest.raises(RemedyError) as failed:
            files.put(f"{_HOME}/b.conf", FileState("file", b"new", 0o644))
    assert failed.value.hint
    files.set_time(_HOME, 99_000_000_001)
    assert differences(before, read_tree(root, "etc")) == {}


def test_a_state_reads_back_and_rubbish_is_refused(root: Path) -> None:
    state = NodeFiles(root).read(f"{_HOME}/b.conf")
    assert parse_state(state.to_json()) == state
    assert not replace(state, content=b"").resembles(state)
    rubbish: Json
    for rubbish in (None, [], {}, {"kind": "socket"}, {**state.to_json(), "mode": "x"}):
        with pytest.raises(RemedyError):
            parse_state(rubbish)
