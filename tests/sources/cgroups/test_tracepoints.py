from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from nodescope.sources.cgroups.tracepoints import Hit, TracepointLayout, parse_records
from nodescope.sources.node.tracefs import TracepointField, TracepointFormat

MKDIR = TracepointFormat(
    "cgroup_mkdir",
    544,
    {
        "root": TracepointField(8, 4, True),
        "id": TracepointField(16, 8, False),
        "path": TracepointField(24, 4, False, text=True),
    },
)
OLD_ATTACH = (
    TracepointFormat(  # ids of four bytes, as before v5.5; texts counted from their field's end
        "cgroup_attach_task",
        538,
        {
            "dst_root": TracepointField(8, 4, True),
            "dst_id": TracepointField(12, 4, True),
            "pid": TracepointField(16, 4, True),
            "dst_path": TracepointField(20, 4, False, text=True, relative=True),
            "comm": TracepointField(24, 4, False, text=True, relative=True),
        },
    )
)
LAYOUTS = {544: TracepointLayout(MKDIR), 538: TracepointLayout(OLD_ATTACH)}


def _record(kind: int, body: bytes) -> bytes:
    body = body.ljust(-(-len(body) // 8) * 8, b"\0")
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


def _hit(pid: int, time_ns: int, raw: bytes) -> bytes:
    return _record(9, struct.pack("<IIQI", pid, pid, time_ns, len(raw)) + raw)


def _mkdir(identity: int, path: bytes) -> bytes:
    where = (len(path) + 1) << 16 | 28
    head = struct.pack("<HBBiiiQI", 544, 0, 0, 1, 4, 1, identity, where)
    return head + path + b"\0"


def test_a_hit_has_its_fields() -> None:
    found, lost = parse_records(_hit(7, 99, _mkdir(2**40, b"/a/b")), LAYOUTS)
    assert found == [Hit(99, "cgroup_mkdir", 7, 4, 2**40, "/a/b", None, None)]
    assert lost == 0


def test_short_ids_and_relative_texts() -> None:
    path, comm = b"/x\0", b"sh\0"
    raw = struct.pack(
        "<HBBiiiiII", 538, 0, 0, 1, 3, 12, 55,
        len(path) << 16 | 4, len(comm) << 16 | len(path),
    ) + path + comm  # fmt: skip
    found, _ = parse_records(_hit(1, 5, raw), LAYOUTS)
    assert found == [Hit(5, "cgroup_attach_task", 1, 3, 12, "/x", 55, "sh")]


def test_what_did_not_fit_is_counted_and_other_records_are_passed_over() -> None:
    unknown = _hit(1, 1, struct.pack("<HBBi", 12, 0, 0, 1))
    data = _record(2, struct.pack("<QQ", 1, 17)) + unknown + _record(5, b"x" * 8)
    assert parse_records(data, LAYOUTS) == ([], 17)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=200))
def test_any_path_comes_back(path: str) -> None:
    found, _ = parse_records(_hit(1, 1, _mkdir(1, path.encode())), LAYOUTS)
    assert [each.path for each in found] == [path or "/"]


def test_a_hit_carries_the_cgroup_of_who_ran_into_it_where_the_kernel_gives_it() -> None:
    raw = _mkdir(5, b"/a/b")
    raw = raw.ljust(-(-(len(raw) + 4) // 8) * 8 - 4, b"\0")  # size and record fill whole words
    body = struct.pack("<IIQI", 7, 7, 99, len(raw)) + raw
    found, _ = parse_records(_record(9, body + struct.pack("<Q", 4711)), LAYOUTS, cgroup=True)
    assert found == [Hit(99, "cgroup_mkdir", 7, 4, 5, "/a/b", None, None, 4711)]
