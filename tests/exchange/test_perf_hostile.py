"""Damaged files: nothing but our own errors, and in bounded time and memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.exchange import perf_files as make

from nodescope.errors import NodescopeError
from nodescope.exchange.import_files import import_files

CLOCK = make.Event()
FAULTS = make.Event(make.PAGE_FAULTS, ids=(8, 9), name="page-faults")
T0 = 5_000_000_000_000


def _content() -> bytes:
    data = CLOCK.comm(10, 0, "python3") + CLOCK.mmap2(10, 0, 0x400000, 0x9000, "/bin/x")
    data += CLOCK.mmap(10, 0, 0x500000, 0x9000, "/bin/y")
    data += CLOCK.mmap2(10, 0, 0x600000, 0x9000, "/bin/z", build_id=b"\1" * 20)
    for i in range(30):
        data += CLOCK.sample(
            10, T0 + i * 1000, cpu=i % 2, kernel=[0xFFFFFFFF81000010], user=[0x401000, 0x501000]
        )
        data += FAULTS.sample(10, T0 + i * 1000) if i % 5 == 0 else b""
    data += CLOCK.fork(11, 10, T0 + 500) + CLOCK.lost(3, T0 + 900) + make.FINISHED_ROUND
    return make.File([CLOCK, FAULTS], data, clock=(T0, 1_700_000_000 * 10**9)).content()


CONTENT = _content()
PIPE = make.File([CLOCK, FAULTS], _content()).pipe()
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # every import syncs to disk
QUICK = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


def import_quietly(content: bytes) -> int | None:
    """Samples imported; None where the file was refused."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "perf.data"
        path.write_bytes(content)
        try:
            (report,) = import_files([path], Path(folder) / "archive").reports
        except NodescopeError:
            return None
        return report.samples


def test_undamaged() -> None:
    assert import_quietly(CONTENT) == 30


@QUICK
@given(st.integers(0, len(CONTENT)))
def test_cut_anywhere(end: int) -> None:
    samples = import_quietly(CONTENT[:end])
    assert samples is None or samples <= 30


@QUICK
@given(st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(1, 255)), max_size=8))
def test_flipped_bits(flips: list[tuple[int, int]]) -> None:
    content = bytearray(CONTENT)
    for at, mask in flips:
        content[at] ^= mask
    import_quietly(bytes(content))


@QUICK
@given(st.integers(0, len(CONTENT) // 8 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1, 2**32, 97]))
def test_any_word_replaced(word: int, value: int) -> None:
    content = bytearray(CONTENT)
    content[8 * word : 8 * word + 8] = value.to_bytes(8, "little")
    import_quietly(bytes(content))


@QUICK
@given(st.binary(max_size=400), st.integers(16, len(PIPE) - 1))
def test_nonsense_in_a_pipe(nonsense: bytes, at: int) -> None:
    import_quietly(PIPE[:at] + nonsense + PIPE[at:])


@QUICK
@given(st.binary(max_size=300), st.sampled_from([81, 83]))
def test_nonsense_as_compressed_data(nonsense: bytes, kind: int) -> None:
    data = CLOCK.sample(10, T0) + make.record(kind, nonsense)
    import_quietly(make.File([CLOCK], data).content())
