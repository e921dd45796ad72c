from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent, SourceDenied, SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder import observer_trial
from nodescope.recorder.observer import Setting
from nodescope.recorder.observer_trial import Trial, try_observers
from nodescope.recorder.observers.catalogue import NAMES, ObserverEntry
from nodescope.records.event import Event
from nodescope.records.node_tables import CgroupRow, UnitRow
from nodescope.sources.access import Access, State
from nodescope.sources.access.privileges import CAPABILITY_BITS, Privileges, read_privileges
from nodescope.sources.places import Places

NOBODY = Privileges(65534, frozenset(), frozenset(CAPABILITY_BITS), seccomp_filter=False)


def _judge(
    said: Observation | None, error: Exception | None = None, name: str = "cgroups"
) -> Access:
    entry = ObserverEntry(name, "what it is")
    trial = Trial(said, error, 10 * SECOND_NS, 1)
    return observer_trial._judge(entry, trial, read_privileges())


def test_one_that_answers_works() -> None:
    said = Observation()
    said.add(CgroupRow(time_ns=1, cgroup="/"))
    judged = _judge(said)
    assert (judged.state, judged.why) == (State.WORKS, "1 rows, asked every 10 s")
    assert judged.what == "cgroups: what it is"
    assert "nothing to tell" in _judge(Observation()).why


def test_one_that_says_it_is_degraded_is() -> None:
    said = Observation(events=[Event(1, "source_degraded", "x", "half of it")])
    assert (_judge(said).state, _judge(said).why) == (State.DEGRADED, "half of it")


@pytest.mark.parametrize("host", [True, False])
def test_units_without_any_state_are_degraded_and_not_called_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: bool
) -> None:
    """Issue 13, point 5: `works  units  94 rows` where neither bus nor journal is."""
    if host:
        (tmp_path / "proc").mkdir()
    monkeypatch.setattr(observer_trial, "_HOST", tmp_path)
    said = Observation()
    said.add(UnitRow(time_ns=1, unit="x.service", file_state="enabled"))
    judged = _judge(said, name="units")
    assert judged.state == State.DEGRADED
    assert "1 units are known by their files alone" in judged.why
    # A command that names /host is printed only where there is one.
    assert ["--systemd-bus" in command for command in judged.commands] == [True] * host
    assert judged.manifest
    said.add(UnitRow(time_ns=1, unit="y.service", active="active"))
    assert _judge(said, name="units").state == State.WORKS


def _degraded(message: str, name: str = "cgroup_churn", **held: object) -> Access:
    said = Observation(events=[Event(1, "source_degraded", "x", message)])
    entry, trial = ObserverEntry(name, "what it is"), Trial(said, None, SECOND_NS, 1)
    return observer_trial._judge(entry, trial, dataclasses.replace(NOBODY, **held))  # type: ignore[arg-type]


def test_one_that_is_degraded_because_it_was_refused_says_what_allows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observer_trial, "is_tracefs_mounted", lambda: True)
    refused = "compared instead: tracefs: Operation not permitted"
    judged = _degraded(refused)
    assert judged.state is State.DEGRADED
    assert judged.commands[0].startswith("setcap cap_perfmon,")
    assert judged.manifest == 'securityContext: {capabilities: {add: ["PERFMON"]}}'
    # The right that is missing is named, not one that is held already.
    other = _degraded(refused, capabilities=frozenset({"perfmon"}))
    assert other.manifest == 'securityContext: {capabilities: {add: ["DAC_READ_SEARCH"]}}'
    assert _degraded("x: Permission denied", "units").commands == ("sudo nodescope record",)
    assert _degraded("x: Connection refused").commands == ()


def test_tracefs_has_to_be_mounted_too_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer_trial, "is_tracefs_mounted", lambda: False)
    refused, mount = "tracefs: Operation not permitted", "mount -t tracefs tracefs /sys"
    judged = _degraded(refused)
    assert judged.commands[0].startswith(mount)
    assert " && setcap cap_perfmon," in judged.commands[0]
    assert "hostPath: {path: /sys/kernel/tracing}" in judged.manifest
    able = _degraded(refused, capabilities=frozenset({"perfmon", "dac_read_search"}))
    assert able.commands == ("mount -t tracefs tracefs /sys/kernel/tracing",)


def test_errors_by_their_kind() -> None:
    assert _judge(None, SourceAbsent("/x", "none")).state is State.ABSENT
    assert _judge(None, SourceError("/x", "odd")).state is State.DEGRADED
    defect = _judge(None, KeyError("x"))
    assert (defect.state, "a defect of ours" in defect.why) == (State.DEGRADED, True)


def test_one_that_is_denied_says_what_allows_it() -> None:
    denied = _judge(None, SourceDenied("/x", "no", hint="do that"))
    assert denied.state is State.DENIED
    assert denied.why == "/x: no; do that"
    assert "DAC_READ_SEARCH" in denied.manifest
    assert _judge(None, SourceDenied("/x", "no"), "units").commands == ("sudo nodescope record",)


def test_one_that_does_not_answer_holds_nobody_up() -> None:
    judged = observer_trial._judge(ObserverEntry("units", "x"), None, read_privileges())
    assert (judged.state, "did not answer" in judged.why) == (State.DEGRADED, True)


def test_on_a_node_that_has_nothing_each_is_absent_or_has_nothing_to_tell(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    judged = try_observers(
        Setting(Places(tmp_path / "root"), tmp_path / "archive"), read_privileges()
    )
    assert [access.source for access in judged] == list(NAMES)
    assert [access for access in judged if "defect" in access.why] == []
    assert not (tmp_path / "archive").exists()


@pytest.mark.live
def test_on_this_node_none_has_a_defect(tmp_path: Path) -> None:
    judged = try_observers(Setting(Places(), tmp_path / "archive"), read_privileges())
    assert [access for access in judged if "defect" in access.why] == []
