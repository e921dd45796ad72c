from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodescope.errors import MalformedSource, SourceAbsent, SourceDenied, SourceError
from nodescope.symbols import LiveKernelSymbols, parse_kallsyms, read_kallsyms

TEXT = b"""\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 t secondary_startup
ffffffff81000100 W weak_function
ffffffff81000200 D some_data
ffffffff81000300 t last_function
ffffffff81000400 T _etext
ffffffff82000000 R __some_rodata
ffffffffc0200000 t nf_conntrack_in\t[nf_conntrack]
ffffffffc0200080 T nf_ct_get\t[nf_conntrack]
ffffffffc0300000 t veth_xmit\t[veth]
ffffffffc0400000 t bpf_prog_6deef7357e7b4530_sd_fw_egress\t[bpf]
ffffffffc0500000 t ftrace_trampoline\t[__builtin__ftrace]
"""


def names_at(text: bytes, *addresses: int) -> list[tuple[str, str] | None]:
    symbols = parse_kallsyms(text)
    rows = symbols.lookup(np.array(addresses, np.uint64)).tolist()
    return [(symbols.name(r), symbols.module(r)) if r >= 0 else None for r in rows]


def test_functions_cover_up_to_the_next_one() -> None:
    assert names_at(TEXT, 0xFFFFFFFF81000040, 0xFFFFFFFF810000FF, 0xFFFFFFFF81000100) == [
        ("secondary_startup", "[kernel]"),
        ("secondary_startup", "[kernel]"),
        ("weak_function", "[kernel]"),
    ]


def test_of_several_names_the_last_is_shown_as_perf_does() -> None:
    assert names_at(TEXT, 0xFFFFFFFF81000001) == [("_text", "[kernel]")]


def test_modules_bpf_and_trampolines_are_told_apart() -> None:
    assert names_at(
        TEXT, 0xFFFFFFFFC0200010, 0xFFFFFFFFC0300001, 0xFFFFFFFFC0400001, 0xFFFFFFFFC0500001
    ) == [
        ("nf_conntrack_in", "[nf_conntrack]"),
        ("veth_xmit", "[veth]"),
        ("bpf_prog_6deef7357e7b4530_sd_fw_egress", "[bpf]"),
        ("ftrace_trampoline", "[__builtin__ftrace]"),
    ]


def test_gaps_belong_to_nobody() -> None:
    assert names_at(
        TEXT, 0, 0xFFFFFFFF80FFFFFF, 0xFFFFFFFF81000400, 0xFFFFFFFF82000010,
        0xFFFFFFFFC0210000, 0xFFFFFFFFFFFFFFFF,
    ) == [None] * 6  # fmt: skip


def test_bpf_programs_end_with_their_page_or_where_the_next_one_near_begins() -> None:
    """What comes later lies between them, and is not theirs."""
    text = b"""\
ffffffff81000000 T _text
ffffffffc0000040 t bpf_prog_1\t[bpf]
ffffffffc0003000 t bpf_prog_2\t[bpf]
ffffffffc0200000 t bpf_prog_3\t[bpf]
ffffffffc0201000 t ftrace_trampoline\t[__builtin__ftrace]
"""
    assert names_at(
        text, 0xFFFFFFFFC0002FFF, 0xFFFFFFFFC0003FFF, 0xFFFFFFFFC0004000, 0xFFFFFFFFC0200FFF,
        0xFFFFFFFFC0201FFF, 0xFFFFFFFFC0202000,
    ) == [
        ("bpf_prog_1", "[bpf]"), ("bpf_prog_2", "[bpf]"), None, ("bpf_prog_3", "[bpf]"),
        ("ftrace_trampoline", "[__builtin__ftrace]"), None,
    ]  # fmt: skip


def test_module_symbols_need_not_be_sorted() -> None:
    assert names_at(
        b"ffffffffc0200080 t b\t[m]\nffffffffc0200000 t a\t[m]\n",
        0xFFFFFFFFC0200001, 0xFFFFFFFFC0200081,
    ) == [("a", "[m]"), ("b", "[m]")]  # fmt: skip


def test_hidden_addresses_are_a_denial() -> None:
    with pytest.raises(SourceDenied, match="hidden"):
        parse_kallsyms(b"0000000000000000 T _text\n0000000000000000 t foo\t[bar]\n")


def test_an_absent_file_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_kallsyms(tmp_path)


@pytest.mark.parametrize("text", [b"", b"\n", b"hello world\n", b"ffffffff81000000 D data\n"])
def test_what_is_no_symbol_table_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse_kallsyms(text)


def test_thirty_two_bit_kernels() -> None:
    assert names_at(b"c1000000 T _text\nc1000040 t foo\n", 0xC1000041) == [("foo", "[kernel]")]


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=400), st.integers(0, 400)))
def test_damage_is_an_error_or_less_symbols(damage: bytes | int) -> None:
    text = TEXT[:damage] if isinstance(damage, int) else TEXT[:200] + damage + TEXT[200:]
    try:
        symbols = parse_kallsyms(text)
    except SourceError:
        return
    for row in range(len(symbols.starts)):
        assert isinstance(symbols.name(row), str)
        assert symbols.module(row)


def test_reading_in_pieces_is_the_same_as_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kallsyms").write_bytes(TEXT)
    whole = parse_kallsyms(TEXT)
    monkeypatch.setattr("nodescope.symbols.kallsyms._READ_BYTES", 50)
    monkeypatch.setattr("nodescope.symbols.kallsyms.PIECE_BYTES", 100)
    pieces = read_kallsyms(tmp_path)
    assert [pieces.name(i) for i in range(len(pieces.starts))] == [
        whole.name(i) for i in range(len(whole.starts))
    ]
    assert (pieces.ends == whole.ends).all()


def test_refresh_sees_new_modules_but_not_too_often(tmp_path: Path) -> None:
    (tmp_path / "kallsyms").write_bytes(TEXT)
    now = [0.0]
    live = LiveKernelSymbols(tmp_path, min_interval_s=30, clock=lambda: now[0])
    (tmp_path / "kallsyms").write_bytes(TEXT + b"ffffffffc0600000 t late\t[late]\n")
    assert not live.refresh()
    now[0] = 31
    assert live.refresh()
    row = int(live.current.lookup(np.array([0xFFFFFFFFC0600000], np.uint64))[0])
    assert live.current.name(row) == "late"
    known, now[0] = live.current, 62
    assert live.refresh()
    assert live.current is known  # nothing new: nothing moves in memory


@pytest.mark.root
def test_the_running_kernel() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: /proc/kallsyms hides addresses")
    symbols = read_kallsyms()
    listed: dict[int, set[str]] = {}
    for line in Path("/proc/kallsyms").read_text().splitlines():
        address, kind, name = line.split()[:3]
        if kind in "tTwWi":
            listed.setdefault(int(address, 16), set()).add(name)
    assert len(symbols.starts) == len(listed)
    for row in range(0, len(symbols.starts), 97):
        assert symbols.name(row) in listed[int(symbols.starts[row])]
    assert symbols.nbytes < 12 << 20


def test_many_module_symbols_are_as_cheap_as_core_ones() -> None:
    modules = [f"module_{i}" for i in range(200)]
    lines = [
        f"{0xFFFFFFFFC0000000 + (m * 300 + i) * 64:x} t function_{i}\t[{name}]"
        for m, name in enumerate(modules)
        for i in range(300)
    ]
    started = time.process_time()
    symbols = parse_kallsyms("\n".join(lines).encode() + b"\n")
    assert time.process_time() - started < 1.0  # about 0.05; the rest is for slow machines
    assert [symbols.module(m * 300) for m in range(200)] == [f"[{name}]" for name in modules]
    assert symbols.name(300 * 7 + 5) == "function_5"
