"""Who leaves zombies behind: one sum, of live events and of recorded rows."""

from __future__ import annotations

from typing import Any

from nodescope.judgement.cgroup_churn import (
    GRACE_NS,
    SETTLED_NS,
    Churn,
    add_up,
    conclude,
    count_unreleased,
    merge_makers,
    read_churn,
)
from nodescope.judgement.churn_ledger import ChurnLedger
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupChurnRow
from nodescope.sources.cgroups.churn import ChurnEvent, Kind
from nodescope.sources.cgroups.watch import Heard

NOW = 10_000 * SECOND_NS


def row(before_s: int, **more: Any) -> CgroupChurnRow:
    values: dict[str, Any] = {
        "parent": "/pods", "pattern": "c*", "maker": "runc", "made": 0, "removed": 0,
        "released": 0, "attached": 0, **more,
    }  # fmt: skip
    return CgroupChurnRow(time_ns=NOW - before_s * SECOND_NS, **values)


def live(*kinds: tuple[float, Kind, int], maker: str = "runc") -> list[ChurnEvent]:
    return [
        ChurnEvent(int(at * SECOND_NS), kind, f"/pods/c{number}", "memory", number, 7, maker)
        for at, kind, number in kinds
    ]


def test_what_is_made_and_removed_is_summed_and_what_stays_is_the_latest() -> None:
    rows = [
        row(100, made=3, removed=2, unreleased=1, maker_pid=5),
        row(90, made=1, removed=2, unreleased=3),
        row(5, removed=4, unreleased=3, workload="agent", attached=2),
    ]
    (churn,) = add_up(reversed(rows), NOW)
    assert (churn.made, churn.removed, churn.unreleased) == (4, 8, 3)
    assert (churn.settled, churn.stayed) == (4, 3)  # of the last four nothing is known yet
    assert (churn.maker_pid, churn.workload, churn.ran) == (5, "agent", (("agent", 2),))


def test_without_releases_nothing_is_known_to_stay_or_to_be_clean() -> None:
    (churn,) = add_up([row(100, made=1, removed=1)], NOW)
    assert churn.unreleased is None
    assert not churn.clean
    assert count_unreleased([churn]) == {}


def test_makers_of_one_name_are_merged_and_the_one_who_leaves_most_is_named() -> None:
    rows = [
        row(100, maker="systemd", made=90, removed=90, unreleased=0),
        row(100, maker="runc", made=5, removed=5, unreleased=4, maker_pid=9),
    ]
    (merged,) = merge_makers(add_up(rows, NOW))
    assert (merged.maker, merged.maker_pid, merged.unreleased) == ("runc", 9, 4)
    assert (merged.made, merged.settled) == (95, 95)


def test_live_events_and_the_rows_recorded_of_them_give_the_same_answer() -> None:
    events = live(
        (1, "made", 1), (2, "attached", 1), (3, "removed", 1), (3.1, "released", 1),
        (4, "made", 2), (5, "removed", 2), (12, "made", 3), (13, "removed", 3),
    )  # fmt: skip
    heard = Heard(20.0, 20 * SECOND_NS, "tracepoints", 0)
    watched = ChurnLedger(grace_ns=2 * SECOND_NS)
    watched.take(events)
    (now,) = conclude(watched.tell(22 * SECOND_NS), heard)

    recorder, rows, end = ChurnLedger(), [], 60
    for at in range(10, end + 1, 10):
        recorder.take(e for e in events if at - 10 <= e.time_ns // SECOND_NS < at)
        told = recorder.tell(at * SECOND_NS)
        rows += [each.as_row(at * SECOND_NS, "tracepoints") for each in told]
    window = Window(0, end * SECOND_NS + 1)
    (recorded,) = read_churn(recording_of(rows), window)
    names = ("parent", "pattern", "maker", "made", "removed", "settled", "unreleased", "pids",
             "ran", "stayed")  # fmt: skip
    assert [getattr(now, name) for name in names] == [getattr(recorded, name) for name in names]
    assert (now.unreleased, now.removed) == (2, 3)


def test_a_watch_without_tracepoints_knows_nothing_of_releases() -> None:
    churn = Churn("/pods", "c*", removed=3, unreleased=3)
    (told,) = conclude([churn], Heard(1.0, 0, "scan", 0))
    assert told.unreleased is None


def test_a_row_is_settled_after_the_grace_and_the_time_until_it_is_written() -> None:
    assert SETTLED_NS > GRACE_NS
    (churn,) = add_up([row(26, removed=1), row(24, removed=1)], NOW)
    assert churn.settled == 1
