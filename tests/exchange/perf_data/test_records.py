"""The walk over records: by runs of samples, and by their sizes alone, must be the same."""

from __future__ import annotations

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodescope.exchange.perf_data.records import _walk_by_sizes, _walk_piece

SAMPLE = 9


def record(kind: int, words: int, inside: int) -> bytes:
    """A record whose content may itself look like the head of a sample."""
    return struct.pack("<IHH", kind, 1, 8 * words) + struct.pack("<Q", inside) * (words - 1)


def head(kind: int, words: int) -> int:
    return kind | (8 * words) << 48


Inside = st.sampled_from([0, SAMPLE, head(SAMPLE, 1), head(SAMPLE, 3), head(SAMPLE, 5000), 1 << 63])
Records = st.lists(
    st.tuples(st.sampled_from([SAMPLE] * 20 + [1, 3, 68]), st.integers(1, 6), Inside), max_size=80
)


@given(Records, st.binary(max_size=64))
def test_runs_of_samples_are_found_as_by_sizes(
    records: list[tuple[int, int, int]], damage: bytes
) -> None:
    content = b"".join(record(*one) for one in records)
    content += damage[: len(damage) // 8 * 8]
    words = np.frombuffer(content, np.uint64)
    for end in {len(words), max(0, len(words) - 2)}:
        found, at = _walk_piece(words, 0, end)
        expected, expected_at = _walk_by_sizes(words, 0, end, end)
        assert found.tolist() == expected.tolist()
        assert at == expected_at
