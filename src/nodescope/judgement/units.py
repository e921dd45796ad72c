"""Verdicts on units: at most one each, the worst that holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nodescope.judgement.loop_rules import JUST_STARTED_NS, decide_by_counter, mean_period_ns
from nodescope.judgement.unit_insides import (
    HiddenFacts,
    find_child_loop,
    find_logged_ends,
    judge_hidden_loop,
)
from nodescope.judgement.unit_loops import UNIT_WITHIN_US, find_unit_loop
from nodescope.judgement.unit_use import asked_by_default, find_unused
from nodescope.judgement.verdict import AuditFinding
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.records.json import Json
from nodescope.sources.systemd.lives import Life
from nodescope.sources.systemd.survey import Survey
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_processes import Insides, UnitInside
from nodescope.sources.systemd.why_not_started import find_cycle

_JUST_US = JUST_STARTED_NS // 1000
_STARTING_US = 600_000_000
_WAITING_US = 30_000_000
_OF_MACHINES = frozenset(
    f"Condition{name}"
    for name in ("Virtualization", "Architecture", "Firmware", "KernelCommandLine", "KernelVersion",
                 "Security", "Capability", "ACPower", "FirstBoot", "CPUFeature", "CPUs", "Memory",
                 "ControlGroupController")
)  # fmt: skip
_MADE_BY_KERNEL = ("/dev/", "/proc/", "/sys/")
_HELD = ("condition:", "assert:", "dependency:", "cycle_deleted")


def audit_units(
    survey: Survey, insides: Insides, hidden: Mapping[str, HiddenFacts] | None = None
) -> list[AuditFinding]:
    """Return what is wrong with units; healthy ones are not named.

    `hidden` is what a recording has of loops inside units, in place of `insides`.
    """
    findings = []
    for unit in survey.units.values():
        facts = _hidden_facts(unit, survey, insides) if hidden is None else hidden.get(unit.name)
        finding = _audit(unit, survey, insides.of.get(unit.name), facts)
        if finding is not None:
            findings.append(finding)
    return findings


def _hidden_facts(unit: Unit, survey: Survey, insides: Insides) -> HiddenFacts:
    inside = insides.of.get(unit.name)
    return HiddenFacts(
        None if inside is None else find_child_loop(inside, insides),
        find_logged_ends(survey.lines.get(unit.name, ()), survey.now_us),
    )


def _audit(
    unit: Unit, survey: Survey, inside: UnitInside | None, hidden: HiddenFacts | None
) -> AuditFinding | None:
    life = survey.lives.of.get(unit.name)
    if unit.load in ("masked", "not-found") and unit.active in (None, "inactive") and not life:
        return None
    if unit.suffix != "service":
        return _failed(unit, life) if unit.active == "failed" else None
    wrong = (
        _looping(unit, life, survey.now_us)
        or _failed(unit, life)
        or _hidden(unit, hidden)
        or _still_starting(unit, life, survey.now_us)
    )
    if wrong is not None:
        return _asked(wrong, unit)
    return (
        _held_back(unit, survey)
        or _held_by_journal(unit, survey)
        or find_unused(unit, survey, inside)
    )


def _asked(finding: AuditFinding, unit: Unit) -> AuditFinding:
    """A finding on a unit that goes wrong, and whether anybody would miss it."""
    by = asked_by_default(unit)
    if by is None:
        return finding
    reason = f"{finding.reason}; nothing but {by} asks for it"
    return replace(finding, reason=reason, evidence={**finding.evidence, "asked_by": by})


# -- fails and loops -------------------------------------------------------


def _looping(unit: Unit, life: Life | None, now_us: int) -> AuditFinding | None:
    waits = (unit.sub or "").startswith("auto-restart")
    count = unit.restarts if unit.restarts is not None else life.counter if life else None
    if unit.active == "failed" or (unit.active is None and life is not None and life.gave_up):
        return None  # systemd gave up: it fails
    if life is not None and life.stopped:
        return None  # it looped until somebody had it stopped
    loop = find_unit_loop(life, now_us) if life is not None and unit.restarts != 0 else None
    since = unit.active_since_us
    just = unit.active == "active" and since is not None and now_us - since < _JUST_US
    counted = decide_by_counter(count, waits=waits, just_started=life is None and just)
    if loop is None and not counted:
        return None
    evidence = _evidence(unit, life) | {"restarts": count}
    if life is not None and life.restarted_us:
        recent = [time * 1000 for time in life.restarted_us if now_us - time < UNIT_WITHIN_US]
        evidence["restarts_in_10_min"] = len(recent)
        period_ns = mean_period_ns(recent)
        if period_ns is not None:
            evidence["every_s"] = round(period_ns / SECOND_NS, 2)
    every = evidence.get("every_s")
    pace = "" if every is None else f", every {every:g} s"
    reason = f"restarted {count} times{pace}; its last run {_end(evidence)}"
    return AuditFinding(unit.name, "looping", reason, evidence)


def _failed(unit: Unit, life: Life | None) -> AuditFinding | None:
    last = None if life is None else life.last
    # where nobody but the journal tells, a unit whose last run failed does not run
    by_journal = unit.active is None and last is not None and last.result is not None
    if unit.active != "failed" and not by_journal:
        return None
    evidence = _evidence(unit, life)
    if life is not None and life.starts - life.restarts >= 2 and not life.successes:
        reason = f"tried {life.starts} times since boot, never with success: {_end(evidence)}"
        return AuditFinding(unit.name, "never_succeeded", reason, evidence)
    limited = unit.why_not_started == "start_limit" or (life is not None and life.refused)
    how = ", and systemd gave up" if limited else ""
    if life is not None and life.stopped and not limited:
        how = " when it was stopped"
        evidence["stopped"] = True
    return AuditFinding(unit.name, "failing", f"failed{how}: {_end(evidence)}", evidence)


def _hidden(unit: Unit, facts: HiddenFacts | None) -> AuditFinding | None:
    if unit.active != "active" or facts is None:
        return None
    return judge_hidden_loop(unit.name, facts)


def _still_starting(unit: Unit, life: Life | None, now_us: int) -> AuditFinding | None:
    since = unit.state_since_us
    if unit.active != "activating" or since is None or now_us - since < _STARTING_US:
        return None
    if life is not None and life.successes:
        return None
    took = format_duration((now_us - since) * 1000)
    reason = f"has been starting for {took} and never came to run"
    return AuditFinding(unit.name, "never_succeeded", reason, _evidence(unit, life))


# -- held back ---------------------------------------------------------------


def _held_back(unit: Unit, survey: Survey) -> AuditFinding | None:
    why = unit.why_not_started or ""
    if not unit.enabled or not (why.startswith(_HELD) or _waits_long(why, survey)):
        return None
    if why.startswith("condition:") and unit.vendor == "vendor" and _is_meant(unit):
        return None
    kind, _, what = why.partition(":")
    reason = {
        "condition": f"not started: its condition {what} is not met",
        "assert": f"not started: its assertion {what} is not met",
        "dependency": f"not started: it requires {what}, which does not run",
        "waiting_for": f"not started: it waits for {what}",
        "cycle_deleted": _circle(unit, survey),
    }[kind]
    evidence: dict[str, Json] = {
        "why_not_started": why,
        "file_state": unit.file_state,
        "wanted_by": list(unit.wanted_by),
    }
    if kind == "cycle_deleted":
        evidence["cycle"] = list(find_cycle(unit, survey.units))
    if kind == "dependency":
        evidence["dependency"] = _state_of(survey.units.get(what))
    life = survey.lives.of.get(unit.name)
    if life is not None and life.start_failures:
        evidence["start_failures"] = dict(life.start_failures)
    return AuditFinding(unit.name, "held_back", reason, evidence)


def _is_meant(unit: Unit) -> bool:
    """Return whether a vendor's condition rightly skips the unit on this machine."""
    if unit.type == "oneshot":
        return True
    unmet = [check for check in unit.conditions if check.met is False] or unit.conditions
    return all(
        check.name in _OF_MACHINES or f"{check.parameter}/".startswith(_MADE_BY_KERNEL)
        for check in unmet
    )


def _circle(unit: Unit, survey: Survey) -> str:
    way = " after ".join(find_cycle(unit, survey.units))
    shown = f" ({way})" if way else ""
    if survey.live:
        return f"not started: it is ordered after itself{shown}, and systemd left it out"
    return f"may not start: it is ordered after itself{shown}, and systemd leaves one of them out"


def _held_by_journal(unit: Unit, survey: Survey) -> AuditFinding | None:
    """Where only the journal tells: it was to be started, and never was."""
    life = survey.lives.of.get(unit.name)
    if unit.active is not None or life is None or life.starts:
        return None
    evidence: dict[str, Json] = {
        "start_failures": dict(life.start_failures),
        "wanted_by": list(unit.wanted_by),
    }
    if "assert" in life.start_failures:
        return AuditFinding(
            unit.name, "held_back", "not started: an assertion of it is not met", evidence
        )
    if "dependency" not in life.start_failures:
        return None
    lives = (survey.lives.of.get(name) for name in unit.requires)
    culprits = [each.unit for each in lives if each is not None and each.failures]
    what = culprits[0] if culprits else "something"
    reason = f"not started: it requires {what}, which could not be started"
    return AuditFinding(unit.name, "held_back", reason, evidence)


def _waits_long(why: str, survey: Survey) -> bool:
    if not why.startswith("waiting_for:"):
        return False
    other = survey.units.get(why.partition(":")[2])
    since = None if other is None else other.state_since_us
    return since is not None and survey.now_us - since > _WAITING_US


# -- evidence --------------------------------------------------------------


def _evidence(unit: Unit, life: Life | None) -> dict[str, Json]:
    evidence: dict[str, Json] = {
        "active": unit.active,
        "sub": unit.sub,
        "result": unit.result,
        "exit_kind": unit.exit_kind,
        "exit_status": unit.exit_status if unit.exit_kind else None,
        "why_not_started": unit.why_not_started,
        "cgroup": unit.cgroup,
    }
    if life is not None:
        evidence |= {
            "starts": life.starts,
            "failures": life.failures,
            "successes": life.successes,
        }
        ended = [run for run in life.runs if run.exit_kind is not None]
        if ended and evidence["exit_kind"] is None:
            evidence |= {"exit_kind": ended[-1].exit_kind, "exit_status": ended[-1].exit_status}
    return evidence


def _end(evidence: Mapping[str, Json]) -> str:
    code, status = evidence.get("exit_kind"), evidence.get("exit_status")
    if code is None:
        return f"ended with {evidence.get('result') or 'no word'}"
    if code == "exited":
        return f"ended with exit code {status}"
    return f"was {code} by signal {status}"


def _state_of(unit: Unit | None) -> str | None:
    if unit is None:
        return None
    if unit.load in ("not-found", "masked"):
        return unit.load
    known = (unit.active, f"({unit.why_not_started})" if unit.why_not_started else None)
    return " ".join(each for each in known if each is not None) or None
