from __future__ import annotations

import numpy as np

from nodescope.archive.interning import Interner
from nodescope.archive.schema import make_batch
from nodescope.archive.stack_layout import MAX_DEPTH
from nodescope.numbering import Sequences

FRAMES = [
    ("[unknown]", "[unknown]", False),
    ("/bin/app", "main", False),
    ("/bin/app", "work", False),
    ("[kernel]", "read", True),
]
PATHS = Sequences([(1, 2), (1,), (3,)])


def make() -> Interner:
    return Interner(FRAMES, PATHS, ["app", "other"])


def intern(interner: Interner, *samples: tuple[int, int, int, int]) -> list[int]:
    comm, mode, user, kernel = np.array(samples, np.int64).reshape(-1, 4).T
    return [int(row) for row in interner.intern(comm, mode, user, kernel)]


def test_a_stack_is_a_run_of_rows() -> None:
    interner = make()
    assert intern(interner, (0, 1, 1, 3)) == [0]
    new = interner.take_new_rows()
    assert new["frames"]["name"] == ("main", "work", "read")
    assert make_batch("stacks", new["stacks"]).to_pydict() == {
        "depth": [0, 1, 2],
        "frame": [0, 1, 2],
    }
    assert make_batch("profile", new["profile"]).to_pydict() == {
        "stack": [2],
        "comm": ["app"],
        "kernel": [True],
        "samples": [0],
        "trunk": [None],
    }


def test_a_stack_is_written_once_and_whole() -> None:
    interner = make()
    intern(interner, (0, 0, 1, 0), (0, 0, 2, 0), (1, 0, 2, 0))
    new = interner.take_new_rows()
    assert sorted(new["stacks"]["depth"].tolist()) == [0, 0, 1]
    assert len(new["profile"]["stack"]) == 3


def test_a_stack_deeper_than_can_be_told_ends_where_it_can() -> None:
    interner = Interner(FRAMES, Sequences([(1,) * (MAX_DEPTH + 5), (2, 2)]), ["app"])
    intern(interner, (0, 0, 1, 0), (0, 0, 2, 0))
    depth = interner.take_new_rows()["stacks"]["depth"]
    assert len(depth) == MAX_DEPTH + 2
    assert depth.max() == MAX_DEPTH - 1


def test_the_same_thing_is_the_same_row_and_never_new_again() -> None:
    interner = make()
    first = intern(interner, (0, 0, 1, 0), (0, 1, 1, 3), (0, 0, 1, 0))
    assert first[0] == first[2] != first[1]
    interner.take_new_rows()
    assert intern(interner, (0, 1, 1, 3), (0, 0, 1, 0)) == [first[1], first[0]]
    assert interner.take_new_rows() == {}


def test_a_sample_without_frames_shows_the_unknown_frame() -> None:
    interner = make()
    intern(interner, (0, 0, 0, 0))
    assert interner.take_new_rows()["frames"]["name"] == ("[unknown]",)


def test_no_samples_no_rows() -> None:
    interner = make()
    assert intern(interner) == []
    assert interner.take_new_rows() == {}
