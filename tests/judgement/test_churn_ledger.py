from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.judgement import churn_ledger
from nodescope.judgement.cgroup_churn import GRACE_NS, Churn
from nodescope.judgement.churn_ledger import ChurnLedger, choose_memory
from nodescope.sources.cgroups.churn import ChurnEvent, Kind


def event(
    kind: Kind, path: str, identity: int, *, at: int = 0, hierarchy: str = "memory",
    pid: int | None = 5, comm: str | None = "runc",
) -> ChurnEvent:  # fmt: skip
    return ChurnEvent(at, kind, path, hierarchy, identity, pid, comm)


def life(path: str, identity: int, *kinds: Kind, hierarchy: str = "memory") -> list[ChurnEvent]:
    return [event(kind, path, identity, hierarchy=hierarchy) for kind in kinds]


def test_cgroups_of_one_pattern_are_one_row() -> None:
    ledger = ChurnLedger()
    for number in range(3):
        ledger.take(life(f"/docker/c{number}", number, "made", "removed", "released"))
    ledger.take([event("made", "/docker/other", 9, comm="mkdir", pid=8)])
    assert ledger.tell(0) == [
        Churn("/docker", "c*", "runc", 3, 3, 3, unreleased=0, maker_pid=5, pids=frozenset((5,)),
              example="/docker/c0"),
        Churn("/docker", "other", "mkdir", 1, unreleased=0, maker_pid=8, pids=frozenset((8,)),
              example="/docker/other"),
    ]  # fmt: skip
    assert ledger.tell(1) == []


def test_the_same_container_in_every_hierarchy_is_one() -> None:
    ledger = ChurnLedger()
    for hierarchy in ("cpu", "memory", "pids"):
        ledger.take(life("/docker/1", 1, "made", "removed", hierarchy=hierarchy))
    for hierarchy in ("cpu", "pids"):
        ledger.take(life("/docker/1", 1, "released", hierarchy=hierarchy))
    (row,) = ledger.tell(2 * GRACE_NS)
    assert (row.made, row.removed, row.released, row.unreleased) == (1, 1, 1, 1)


def test_a_cgroup_counts_for_its_maker_whoever_removes_it() -> None:
    ledger = ChurnLedger()
    ledger.take([event("made", "/a/1", 1), event("removed", "/a/1", 1, pid=1, comm="systemd")])
    (row,) = ledger.tell(0)
    assert (row.maker, row.made, row.removed) == ("runc", 1, 1)


def test_what_was_made_before_counts_for_who_removes_it() -> None:
    ledger = ChurnLedger()
    ledger.take([event("removed", "/a/1", 1, comm="systemd")])
    (row,) = ledger.tell(0)
    assert (row.maker, row.made, row.removed) == ("systemd", 0, 1)


def test_several_makers_of_one_name_have_no_pid() -> None:
    ledger = ChurnLedger()
    ledger.take([event("made", f"/a/{pid}", pid, pid=pid) for pid in (1, 2)])
    (several,) = ledger.tell(0)
    assert several.maker_pid is None
    assert several.pids == {1, 2}
    ledger.take([event("made", "/a/3", 3, pid=2)])
    assert ledger.tell(1)[0].maker_pid == 2


def test_what_runs_in_it_is_named() -> None:
    ledger = ChurnLedger()
    ledger.take([event("made", "/a/1", 1), event("attached", "/a/1", 1, pid=77, comm="agent")])
    ledger.take([event("attached", "/old", 99, comm="sh")])  # not made while we watched
    (row,) = ledger.tell(0)
    assert (row.attached, row.workload, row.ran) == (1, "agent", (("agent", 1),))


def test_removed_and_not_released_counts_after_a_minute_and_until_it_is() -> None:
    ledger = ChurnLedger()
    ledger.take(life("/a/1", 1, "made", "removed"))
    assert ledger.tell(GRACE_NS - 1)[0].unreleased == 0
    assert ledger.tell(GRACE_NS)[0].unreleased == 1
    assert ledger.tell(GRACE_NS + 1) == []
    assert ledger.tell(GRACE_NS + 2, whole=True)[0].unreleased == 1
    ledger.take(life("/a/1", 1, "released"))
    (row,) = ledger.tell(GRACE_NS + 3)
    assert (row.released, row.unreleased) == (1, 0)


def test_a_path_used_again_is_another_cgroup() -> None:
    ledger = ChurnLedger()
    ledger.take(life("/a/x", 1, "made", "removed") + life("/a/x", 2, "made", "removed", "released"))
    assert ledger.tell(GRACE_NS)[0].unreleased == 1


def test_releases_of_what_was_removed_before_are_passed_over() -> None:
    ledger = ChurnLedger()
    ledger.take(life("/a/1", 1, "released"))
    assert ledger.tell(0) == []


def test_without_releases_what_is_unreleased_is_not_known() -> None:
    ledger = ChurnLedger(releases=False)
    ledger.take(life("/a/1", 1, "made", "removed"))
    (row,) = ledger.tell(0)
    assert (row.removed, row.unreleased) == (1, None)
    assert ledger.tell(2 * GRACE_NS) == []


def test_beyond_the_bound_zombies_are_counted_and_not_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(churn_ledger, "_MAX_REMOVED", 10)
    ledger = ChurnLedger()
    for number in range(35):
        ledger.take(life(f"/a/z{number}", number, "made", "removed"))
    assert ledger.tell(GRACE_NS)[0].unreleased == 35
    for number in range(35):
        ledger.take(life(f"/a/z{number}", number, "released"))
    (row,) = ledger.tell(GRACE_NS)
    assert (row.released, row.unreleased) == (35, 0)


def test_names_without_pattern_do_not_fill_the_memory() -> None:
    ledger = ChurnLedger()
    words = ["".join(chr(97 + (number >> shift) % 26) for shift in (0, 4, 8, 12)) for number in
             range(3000)]  # fmt: skip
    for number, word in enumerate(words):
        ledger.take(life(f"/a/{word}", number, "made", "removed", "released"))
    rows = ledger.tell(0)
    assert len(rows) <= churn_ledger._MAX_PATTERNS + 1
    assert sum(row.made for row in rows) == 3000


def test_varying_parents_are_told_by_pattern_when_they_are_many() -> None:
    ledger = ChurnLedger()
    for number in range(5000):
        ledger.take(life(f"/pods/pod{number}/main", number, "made", "removed", "released"))
    rows = ledger.tell(0)
    assert len(rows) <= churn_ledger._MAX_GROUPS + 1
    assert rows[-1].parent == "/pods/pod*"
    assert sum(row.made for row in rows) == 5000
    for _ in range(40):
        ledger.tell(1)
    assert ledger._groups == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["made", "removed", "released", "attached"]),
            st.integers(0, 8),
            st.integers(0, 3),
        ),
        max_size=60,
    )
)
def test_any_order_of_events_adds_up(history: Iterable[tuple[Kind, int, int]]) -> None:
    ledger, now = ChurnLedger(), 0
    made = removed = 0
    rows: list[Churn] = []
    for kind, identity, minutes in history:
        now += minutes * GRACE_NS
        ledger.take([event(kind, f"/p/{identity}", identity, at=now)])
        rows += ledger.tell(now)
        made += kind == "made"
        removed += kind == "removed"
    assert sum(row.made for row in rows) == made
    assert sum(row.removed for row in rows) == removed
    assert all((row.unreleased or 0) >= 0 for row in rows)


def test_only_the_memory_controllers_hierarchy_is_chosen() -> None:
    events = [
        event("made", "/a", 1), event("made", "/b", 2, hierarchy="unified"),
        event("made", "/c", 3, hierarchy="cpu,memory"), event("made", "/d", 4, hierarchy="cpu"),
    ]  # fmt: skip
    assert [each.path for each in choose_memory(events, v2=False)] == ["/a", "/c"]
    assert [each.path for each in choose_memory(events, v2=True)] == ["/b"]


def test_makers_of_one_name_in_several_cgroups_are_told_apart() -> None:
    ledger = ChurnLedger()
    for number, inside in enumerate(("/a.service", "/b.service", "/a.service", None)):
        ledger.take(
            [ChurnEvent(0, "made", f"/slice/job-{number}", "memory", number, 5, "mkdir", inside)]
        )
    told = {each.maker_cgroup: each.made for each in ledger.tell(1)}
    assert told == {"/a.service": 2, "/b.service": 1, None: 1}


def test_beyond_a_bound_the_cgroup_of_a_maker_is_not_told() -> None:
    ledger = ChurnLedger()
    for number in range(600):
        job, scope = f"/slice/job-{number}", f"/run-{number}.scope"
        ledger.take([ChurnEvent(0, "made", job, "memory", number, 5, "mkdir", scope)])
    told = ledger.tell(1)
    assert sum(each.made for each in told) == 600
    assert next(each.made for each in told if each.maker_cgroup is None) == 100
