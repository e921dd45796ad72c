from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.perf import perf_records as make

from nodescope.perf.decode import Chains, RecordBatch, decode, split
from nodescope.perf.kernel_code import CodeChange
from nodescope.perf.look_ahead import find_mapped

ADDRESS = st.integers(0x1000, 2**47 - 1)
KERNEL_ADDRESS = st.integers(0xFFFF800000000000, 2**64 - 4096 - 1)


def decode_bytes(*parts: bytes, cgroup: bool = False) -> RecordBatch:
    return decode([split(cpu, part) for cpu, part in enumerate(parts)], cgroup=cgroup)


def chain(chains: Chains, row: int) -> list[int]:
    start = int(chains.starts[row])
    return [int(one) for one in chains.addresses[start : start + int(chains.lengths[row])]]


def test_a_sample_gives_its_columns_and_both_chains() -> None:
    batch = decode_bytes(
        make.sample(10, 12, 500, kernel=[0xFFFFFFFF81000010, 0xFFFFFFFF81000020], user=[0x401000]),
        make.sample(20, 20, 600, user=[0x7F0000001000, 0x7F0000002000, 0x7F0000003000]),
    )
    samples = batch.samples
    assert samples.cpu.tolist() == [0, 1]
    assert samples.pid.tolist() == [10, 20]
    assert samples.tid.tolist() == [12, 20]
    assert samples.time_ns.tolist() == [500, 600]
    assert samples.kernel_mode.tolist() == [True, False]
    # The innermost frame is where the core was; a caller's is the call before the return.
    assert chain(samples.kernel, 0) == [0xFFFFFFFF81000010, 0xFFFFFFFF8100001F]
    assert chain(samples.user, 0) == [0x401000]
    assert chain(samples.kernel, 1) == []
    assert chain(samples.user, 1) == [0x7F0000001000, 0x7F0000001FFF, 0x7F0000002FFF]


def test_the_cgroup_follows_the_chain() -> None:
    batch = decode_bytes(
        make.sample(1, 1, 5, user=[0x401000, 0x402000], cgroup=77)
        + make.sample(1, 1, 6, chain=[], cgroup=78),
        cgroup=True,
    )
    assert batch.samples.cgroup is not None
    assert batch.samples.cgroup.tolist() == [77, 78]


def test_guest_frames_and_page_zero_are_no_code_of_ours() -> None:
    guest = 2**64 - 2048
    batch = decode_bytes(make.sample(1, 1, 5, chain=[guest, 0x1234, make.USER, 0x401000, 0x0]))
    assert chain(batch.samples.user, 0) == [0x401000]
    assert chain(batch.samples.kernel, 0) == []


def test_side_band_records() -> None:
    batch = decode_bytes(
        make.comm(5, 6, 100, "short")
        + make.comm(5, 5, 110, "fifteen-letters", executed=True)
        + make.fork(9, 5, 120)
        + make.end(9, 130)
        + make.mmap2(5, 140, 0x400000, 0x2000, "/usr/bin/x", offset=0x1000, inode=42)
        + make.lost(17, 150)
        + make.cgroup(99, "/kubepods/pod1", 160)
    )
    names = [bytes(name.tobytes()).rstrip(b"\0") for name in batch.comms.name]
    assert names == [b"short", b"fifteen-letters"]
    assert batch.comms.exec.tolist() == [False, True]
    assert batch.comms.time_ns.tolist() == [100, 110]
    assert batch.forks.pid.tolist() == [9]
    assert batch.forks.parent_pid.tolist() == [5]
    assert batch.exits.time_ns.tolist() == [130]
    assert batch.mappings.file.tolist() == [[8 | (1 << 32), 42, 0]]
    assert batch.name(int(batch.mappings.name_at[0])) == "/usr/bin/x"
    assert batch.lost == ((0, 17),)
    assert batch.cgroups == ((99, "/kubepods/pod1"),)
    assert batch.malformed == 0


def test_kernel_code_that_comes_and_goes() -> None:
    batch = decode_bytes(
        make.ksymbol(7, 0xFFFFFFFFC0022000, 0x1C0, "bpf_prog_1234_x")
        + make.ksymbol(8, 0xFFFFFFFFC0022000, 0x1C0, "bpf_prog_1234_x", gone=True),
        make.ksymbol(9, 0xFFFFFFFFC0030000, 0x1000, "ftrace_trampoline", kind=2)
        + make.ksymbol(9, 0xFFFFFFFFC0031000, 0x1000, "kprobe_insn_page", kind=2),
    )
    came = CodeChange(
        7, 0xFFFFFFFFC0022000, 0xFFFFFFFFC00221C0, "[bpf]", "bpf_prog_1234_x", gone=False
    )
    assert batch.code_changes[:2] == (came, replace(came, time_ns=8, gone=True))
    assert [change.module for change in batch.code_changes[2:]] == [
        "[__builtin__ftrace]", "[__builtin__kprobes]",
    ]  # fmt: skip
    assert batch.malformed == 0


@pytest.mark.parametrize("length", range(1, 18))
def test_kernel_code_that_others_are_told_of_too(length: int) -> None:
    batch = decode_bytes(
        make.ksymbol(7, 0xFFFFFFFFC0022000, 0x1C0, "x" * length, listeners=3)
        + make.sample(2, 2, 9, user=[0x401000])
    )
    (change,) = batch.code_changes
    assert (change.time_ns, change.name) == (7, "x" * length)
    assert batch.samples.time_ns.tolist() == [9]
    assert batch.malformed == 0


def test_a_chain_longer_than_its_record_is_malformed_and_the_rest_is_kept() -> None:
    liar = struct.pack("<IIQQ", 1, 1, 5, 1000)
    batch = decode_bytes(make.record(9, liar) + make.sample(2, 2, 6, user=[0x401000]))
    assert batch.malformed == 1
    assert batch.samples.pid.tolist() == [2]


def test_a_cut_record_ends_the_walk_and_loses_nothing_before_it() -> None:
    whole = make.sample(2, 2, 6, user=[0x401000])
    batch = decode_bytes(whole + make.sample(3, 3, 7, user=[0x401000])[:-8])
    assert batch.samples.pid.tolist() == [2]
    assert batch.malformed == 1


def test_nothing_at_all() -> None:
    assert len(decode([], cgroup=True).samples) == 0


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**22),
            st.integers(0, 2**62),
            st.lists(KERNEL_ADDRESS, max_size=40),
            st.lists(ADDRESS, max_size=40),
        ),
        max_size=20,
    )
)
def test_every_sample_comes_back(rows: list[tuple[int, int, list[int], list[int]]]) -> None:
    data = b"".join(
        make.sample(pid, pid, time, kernel=kernel, user=user) for pid, time, kernel, user in rows
    )
    samples = decode_bytes(data).samples
    assert samples.pid.tolist() == [row[0] for row in rows]
    assert samples.time_ns.tolist() == [row[1] for row in rows]
    for number, (_, _, kernel, user) in enumerate(rows):
        for got, sent in ((samples.kernel, kernel), (samples.user, user)):
            assert chain(got, number) == [a - (i > 0) for i, a in enumerate(sent)]


@given(st.binary(max_size=600), st.booleans())
def test_no_bytes_are_an_exception(data: bytes, cgroup: bool) -> None:
    data = data[: len(data) // 8 * 8]
    batch = decode([split(0, data)], cgroup=cgroup)
    find_mapped([split(0, data)], set())
    assert len(batch.samples) * 32 <= len(data)
