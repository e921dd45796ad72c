from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.sources.node.tracefs import TracepointField, open_tracefs, parse_format
from nodescope.sources.places import Places

COMMON = b"""\
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

"""
MKDIR = (
    b"name: cgroup_mkdir\nID: 544\nformat:\n"
    + COMMON
    + b"""\
	field:int root;	offset:8;	size:4;	signed:1;
	field:int level;	offset:12;	size:4;	signed:1;
	field:u64 id;	offset:16;	size:8;	signed:0;
	field:__data_loc char[] path;	offset:24;	size:4;	signed:0;

print fmt: "root=%d id=%llu level=%d path=%s", REC->root, REC->id, REC->level, __get_str(path)
"""
)


def test_fields_stand_where_the_kernel_says() -> None:
    parsed = parse_format(MKDIR)
    assert (parsed.name, parsed.number) == ("cgroup_mkdir", 544)
    assert parsed.field("id") == TracepointField(offset=16, size=8, signed=False)
    assert parsed.field("root", "dst_root").signed
    assert parsed.field("path") == TracepointField(offset=24, size=4, signed=False, text=True)


def test_arrays_and_relative_texts() -> None:
    parsed = parse_format(
        b"name: x\nID: 1\nformat:\n"
        b"\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
        b"\tfield:__rel_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;\n"
    )
    assert parsed.field("comm") == TracepointField(offset=8, size=16, signed=False)
    assert parsed.field("path").relative


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(MalformedSource, match=r"cgroup_mkdir.*no field dst_path"):
        parse_format(MKDIR).field("dst_path")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"name: x\n",
        b"name: x\nID: many\n",
        b"name: x\nID: 1\nfield:int a; offset:x; size:4;\n",
        b"name: x\nID: 1\nfield:\n",
    ],
)
def test_what_is_no_format_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse_format(content)


def test_tracefs_of_a_node_is_read_where_it_is_mounted(tmp_path: Path) -> None:
    folder = tmp_path / "sys/kernel/debug/tracing/events/cgroup/cgroup_mkdir"
    folder.mkdir(parents=True)
    (folder / "format").write_bytes(MKDIR)
    with open_tracefs(Places(tmp_path)) as tracefs:
        assert tracefs.read_format("cgroup", "cgroup_mkdir").number == 544
        with pytest.raises(SourceAbsent, match="cgroup_rmdir"):
            tracefs.read_format("cgroup", "cgroup_rmdir")


def test_tracefs_that_is_mounted_nowhere_is_absent_unless_it_may_be_mounted(
    tmp_path: Path,
) -> None:
    with pytest.raises(SourceAbsent) as raised:
        open_tracefs(Places(tmp_path), mount=False)
    assert raised.value.hint is not None


@pytest.mark.root
@pytest.mark.live
def test_this_kernel_describes_its_tracepoints_and_nothing_stays_mounted(tmp_path: Path) -> None:
    before = Path("/proc/self/mounts").read_text()
    with open_tracefs(Places(tmp_path)) as tracefs:  # no tree has it: mounted for us
        parsed = tracefs.read_format("cgroup", "cgroup_attach_task")
    assert parsed.field("dst_path").text
    ours = [line for line in Path("/proc/self/mounts").read_text().splitlines()
            if line not in before and "tracefs" in line]  # fmt: skip
    assert ours == []
