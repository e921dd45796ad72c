"""`perf script` text whose samples have no times."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_samples

from nodescope.exchange.perf_script.text import looks_like_perf_script
from nodescope.exchange.profiles.untimed_script import (
    looks_like_untimed_script,
    parse_untimed_script,
)
from nodescope.ingest.parsed import Notes, ParsedNames

_FRAMES = (
    b"\tffffffff81000001 do_syscall_64+0x51 ([kernel.kallsyms])\n"
    b"\t    7f1c2a94b2c4 read+0x54 (/usr/lib/libc.so.6)\n\n"
)
_SHAPES = [
    b"python3   812/814 \n",
    b"python3   812/814  [003]  cycles:ppp: \n",
    b"python3   812/814      10101010 cpu-clock:\n",
]


@pytest.mark.parametrize("header", _SHAPES)
def test_samples_are_counted_by_process_and_stack(header: bytes) -> None:
    other = header.replace(b"python3", b"Web Content").replace(b"812", b"77")
    text = b"# perf\n" + (header + _FRAMES) * 3 + other + _FRAMES
    assert looks_like_untimed_script(text)
    assert not looks_like_perf_script(text)
    names, notes = ParsedNames(), Notes()
    counted = parse_untimed_script([text[:70], text[70:]], names, notes)
    assert [(names.comms[each.comm], each.pid, each.tid, each.samples) for each in counted] == [
        ("python3", 812, 814, 3), ("Web Content", 77, 814, 1),
    ]  # fmt: skip
    frames = [names.frames[number].name for number in names.paths[counted[0].path]]
    assert frames == ["read", "do_syscall_64"]
    assert not notes.skipped


@pytest.mark.parametrize(
    "text",
    [
        b"python3 812/814 [003] 86204.314159: 10 cycles:\n" + _FRAMES,
        b"a;b;c 12\n", b"", b"hello\n", b"hello 12\nworld\n", b"Nov 17 10:00:00 host kernel: x\n",
    ],
)  # fmt: skip
def test_other_text_is_not_taken_for_it(text: bytes) -> None:
    assert not looks_like_untimed_script(text)


def test_it_is_imported_and_says_that_its_times_are_made_up(tmp_path: Path) -> None:
    path = tmp_path / "script.txt"
    path.write_bytes((_SHAPES[0] + _FRAMES) * 50)
    report, archive = import_file(path, tmp_path / "archive")
    assert (report.format, report.samples) == ("perf script without times", 50)
    assert any("without times of its own" in note for note in report.notes)
    assert len(read_samples(archive)) == 50
