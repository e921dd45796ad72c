"""Threads that serve packets: held up, busy, or without work."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import MalformedSource
from nodescope.quantities import MILLISECOND_NS, SECOND_NS
from nodescope.recorder.watches.napi_threads import NapiWatch, Reading, is_held_up
from nodescope.sources.network.napi_threads import ThreadTimes, parse_thread_times


def at(second: int, ran_ms: int, waited_ms: int, runnable: bool = True) -> Reading:
    return second * SECOND_NS, ThreadTimes(
        runnable, 1, ran_ms * MILLISECOND_NS, waited_ms * MILLISECOND_NS
    )


def test_a_thread_that_never_runs() -> None:
    assert is_held_up([at(0, 5, 9), at(1, 5, 9), at(2, 5, 9)])


def test_a_thread_that_is_let_for_a_moment_each_second_even_if_always_seen_in_it() -> None:
    moments = [at(0, 5, 0), at(1, 6, 945), at(2, 7, 1890)]
    assert is_held_up(moments)
    asleep = [(time_ns, ThreadTimes(False, 1, t.ran_ns, t.waited_ns)) for time_ns, t in moments]
    assert is_held_up(asleep)


def test_a_wait_that_is_not_over_counts() -> None:
    # It was let run right after the second reading, and waits since.
    assert is_held_up([at(0, 5, 0), at(1, 5, 0), at(2, 6, 1000)])
    assert is_held_up([at(0, 5, 0), at(1, 6, 950), at(2, 6, 950)])


def test_threads_that_sleep_or_work_are_well() -> None:
    assert not is_held_up([at(0, 5, 9, False), at(1, 5, 9, False), at(2, 5, 9, False)])
    assert not is_held_up([at(0, 5, 9), at(1, 500, 300), at(2, 1000, 600)])
    # Without much to do, and just woken.
    assert not is_held_up([at(0, 5, 9, False), at(1, 6, 9, False), at(2, 7, 10)])
    # Many compete for the core, and it gets its share.
    assert not is_held_up([at(0, 0, 0), at(1, 100, 900), at(2, 200, 1800)])


def test_a_moment_proves_nothing() -> None:
    assert not is_held_up([at(0, 5, 9)])
    assert not is_held_up([at(0, 5, 9), at(1, 5, 9)])


STAT = (
    "{pid} (napi/eth0-8193) {state} 2 0 0 0 -1 2129984 0 0 0 0 0 3 0 0 20 0 1 0 99 0 0 "
    "18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 {cpu} 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


def thread(proc: Path, pid: int, name: str, ran_ms: int, state: str = "R", cpu: int = 7) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comm").write_text(name + "\n")
    (folder / "stat").write_text(STAT.format(pid=pid, state=state, cpu=cpu))
    (folder / "schedstat").write_text(f"{ran_ms * MILLISECOND_NS} 0 12\n")


@pytest.mark.parametrize("children", [True, False])
def test_they_are_found_among_the_kernels_threads(tmp_path: Path, children: bool) -> None:
    thread(tmp_path, 2, "kthreadd", 1, "S")
    thread(tmp_path, 20, "kworker/7:1", 1)
    thread(tmp_path, 30, "napi/eth0-8193", 1)
    thread(tmp_path, 31, "napi/eth0-8194", 1, "S")
    if children:
        folder = tmp_path / "2/task/2"
        folder.mkdir(parents=True)
        (folder / "children").write_text("20 30 31 ")
    watch = NapiWatch(tmp_path)
    held = [watch.find_held_up(second * SECOND_NS) for second in (1, 2, 3, 4)]
    assert held == [{}, {}, {7: ["napi/eth0-8193"]}, {7: ["napi/eth0-8193"]}]
    for name in ("comm", "stat", "schedstat"):
        (tmp_path / "30" / name).unlink()
    assert watch.find_held_up(5 * SECOND_NS) == {}


def test_a_container_sees_none_of_them(tmp_path: Path) -> None:
    thread(tmp_path, 2, "bash", 1)
    assert NapiWatch(tmp_path).find_held_up(SECOND_NS) == {}
    assert NapiWatch(tmp_path / "nothing").find_held_up(SECOND_NS) == {}


def test_what_is_no_threads_text() -> None:
    with pytest.raises(MalformedSource):
        parse_thread_times("3 (x) R 1", "1 2 3")
