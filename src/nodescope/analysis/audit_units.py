"""Verdicts on units: at most one each, the worst that holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodescope.analysis.audit import Finding
from nodescope.analysis.audit_inside import audit_inside
from nodescope.quantities import format_duration
from nodescope.sources.systemd.lives import LOOP_RESTARTS, LOOP_WITHIN_US, Life
from nodescope.sources.systemd.survey import Survey
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.unit_insides import Inside, Insides

_JUST_US = 60_000_000
_STARTING_US = 600_000_000
_WAITING_US = 30_000_000
_HELD = ("condition:", "assert:", "dependency:", "cycle_deleted")


def audit_units(survey: Survey, insides: Insides) -> list[Finding]:
    """What is wrong with units; healthy ones are not named."""
    findings = []
    for unit in survey.units.values():
        finding = _audit(unit, survey, insides)
        if finding is not None:
            findings.append(finding)
    return findings


def _audit(unit: Unit, survey: Survey, insides: Insides) -> Finding | None:
    life = survey.lives.of.get(unit.name)
    if unit.load in ("masked", "not-found") and unit.active in (None, "inactive") and not life:
        return None
    if unit.suffix != "service":
        return _failed(unit, life) if unit.active == "failed" else None
    inside = insides.of.get(unit.name)
    return (
        _looping(unit, life, survey.now_us)
        or _failed(unit, life)
        or _hidden(unit, inside, survey, insides)
        or _still_starting(unit, life, survey.now_us)
        or _held_back(unit, survey)
        or _held_by_journal(unit, survey)
        or _unused(unit, survey, inside)
    )


# -- fails and loops -------------------------------------------------------


def _looping(unit: Unit, life: Life | None, now_us: int) -> Finding | None:
    waits = (unit.sub or "").startswith("auto-restart")
    count = unit.restarts if unit.restarts is not None else life.counter if life else None
    if unit.active == "failed" or (unit.active is None and life is not None and life.gave_up):
        return None  # systemd gave up: it fails
    told = life is not None and unit.restarts != 0 and life.is_looping(now_us)
    since = unit.active_since_us
    just = unit.active == "active" and since is not None and now_us - since < _JUST_US
    seen = (count or 0) >= LOOP_RESTARTS and (waits or (life is None and just))
    if not told and not seen:
        return None
    evidence = _evidence(unit, life) | {"restarts": count}
    if life is not None and life.restarted_us:
        recent = [time for time in life.restarted_us if now_us - time < LOOP_WITHIN_US]
        evidence["restarts_in_10_min"] = len(recent)
        if len(recent) > 1:
            each = (recent[-1] - recent[0]) / (len(recent) - 1)
            evidence["every_s"] = round(each / 1e6, 2)
    every = evidence.get("every_s")
    pace = "" if every is None else f", every {every:g} s"
    reason = f"restarted {count} times{pace}; its last run {_end(evidence)}"
    return Finding(unit.name, "looping", reason, evidence)


def _failed(unit: Unit, life: Life | None) -> Finding | None:
    last = None if life is None else life.last
    # where nobody but the journal tells, a unit whose last run failed does not run
    by_journal = unit.active is None and last is not None and last.result is not None
    if unit.active != "failed" and not by_journal:
        return None
    evidence = _evidence(unit, life)
    if life is not None and life.starts - life.restarts >= 2 and not life.successes:
        reason = f"tried {life.starts} times since boot, never with success: {_end(evidence)}"
        return Finding(unit.name, "never_succeeded", reason, evidence)
    told = by_journal and life is not None and life.restarts > 0 and life.gave_up
    limited = told or unit.why_not_started == "start_limit"
    gave_up = ", and systemd gave up" if limited else ""
    return Finding(unit.name, "failing", f"failed{gave_up}: {_end(evidence)}", evidence)


def _hidden(unit: Unit, inside: Inside | None, survey: Survey, insides: Insides) -> Finding | None:
    if unit.active != "active":
        return None
    lines = survey.lines.get(unit.name, ())
    return audit_inside(inside, insides, lines, survey.now_us, unit.name)


def _still_starting(unit: Unit, life: Life | None, now_us: int) -> Finding | None:
    since = unit.state_since_us
    if unit.active != "activating" or since is None or now_us - since < _STARTING_US:
        return None
    if life is not None and life.successes:
        return None
    took = format_duration((now_us - since) * 1000)
    reason = f"has been starting for {took} and never came to run"
    return Finding(unit.name, "never_succeeded", reason, _evidence(unit, life))


# -- held back, and not needed ---------------------------------------------


def _held_back(unit: Unit, survey: Survey) -> Finding | None:
    why = unit.why_not_started or ""
    if not unit.enabled or not (why.startswith(_HELD) or _waits_long(why, survey)):
        return None
    if why.startswith("condition:") and unit.vendor == "vendor" and unit.type == "oneshot":
        return None  # meant to run only where there is something to do
    kind, _, what = why.partition(":")
    reason = {
        "condition": f"not started: its condition {what} is not met",
        "assert": f"not started: its assertion {what} is not met",
        "dependency": f"not started: it requires {what}, which does not run",
        "waiting_for": f"not started: it waits for {what}",
        "cycle_deleted": "not started: it is ordered after itself, and systemd broke the circle",
    }[kind]
    evidence: dict[str, Any] = {
        "why_not_started": why,
        "file_state": unit.file_state,
        "wanted_by": list(unit.wanted_by),
    }
    if kind == "dependency":
        evidence["dependency"] = _state_of(survey.units.get(what))
    life = survey.lives.of.get(unit.name)
    if life is not None and life.start_failures:
        evidence["start_failures"] = dict(life.start_failures)
    return Finding(unit.name, "held_back", reason, evidence)


def _held_by_journal(unit: Unit, survey: Survey) -> Finding | None:
    """Where only the journal tells: it was to be started, and never was."""
    life = survey.lives.of.get(unit.name)
    if unit.active is not None or life is None or life.starts:
        return None
    evidence = {"start_failures": dict(life.start_failures), "wanted_by": list(unit.wanted_by)}
    if "assert" in life.start_failures:
        return Finding(
            unit.name, "held_back", "not started: an assertion of it is not met", evidence
        )
    if "dependency" not in life.start_failures:
        return None
    lives = (survey.lives.of.get(name) for name in unit.requires)
    culprits = [each.unit for each in lives if each is not None and each.failures]
    what = culprits[0] if culprits else "something"
    reason = f"not started: it requires {what}, which could not be started"
    return Finding(unit.name, "held_back", reason, evidence)


def _waits_long(why: str, survey: Survey) -> bool:
    if not why.startswith("waiting_for:"):
        return False
    other = survey.units.get(why.partition(":")[2])
    since = None if other is None else other.state_since_us
    return since is not None and survey.now_us - since > _WAITING_US


def _unused(unit: Unit, survey: Survey, inside: Inside | None) -> Finding | None:
    """Enabled by a preset that names it or by the image, and nothing needs or reaches it."""
    wanted_by_image = unit.preset_rule is not None or unit.image_wants
    if not wanted_by_image or unit.type in ("oneshot", "dbus") or unit.bus_name:
        return None
    if not (unit.enabled or unit.image_wants) or unit.active not in ("active", None):
        return None
    if any(not _is_own(name, unit) for name in unit.dependants):
        return None
    if survey.live and inside is None:
        return None  # what it listens on cannot be seen: no verdict
    if inside is not None and inside.listening:
        return None
    by = f"the preset `{unit.preset_rule}`" if unit.preset_rule else "a link of the image"
    wanted = ", ".join(unit.wanted_by) or "nothing"
    reason = f"enabled by {by}; nothing but {wanted} wants it, and it listens on nothing"
    evidence = {
        "preset": unit.preset_rule,
        "vendor": unit.vendor,
        "fragment": unit.fragment,
        "wanted_by": list(unit.wanted_by),
        "dependants": [],
        "listening": [] if inside is not None else None,
    }
    if inside is None:
        reason = f"enabled by {by}; nothing but {wanted} wants it, and no socket starts it"
    return Finding(unit.name, "unused", reason, evidence)


def _is_own(dependant: str, unit: Unit) -> bool:
    """Whether a dependant is only the target that pulls it in, or what stops everything."""
    return dependant == "shutdown.target" or (
        dependant in unit.wanted_by and dependant.endswith(".target")
    )


# -- evidence --------------------------------------------------------------


def _evidence(unit: Unit, life: Life | None) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "active": unit.active,
        "sub": unit.sub,
        "result": unit.result,
        "exit_code": unit.exit_code,
        "exit_status": unit.exit_status if unit.exit_code else None,
        "why_not_started": unit.why_not_started,
        "cgroup": unit.cgroup,
    }
    if life is not None:
        evidence |= {
            "starts": life.starts,
            "failures": life.failures,
            "successes": life.successes,
        }
        ended = [run for run in life.runs if run.exit_code is not None]
        if ended and evidence["exit_code"] is None:
            evidence |= {"exit_code": ended[-1].exit_code, "exit_status": ended[-1].exit_status}
    return evidence


def _end(evidence: Mapping[str, Any]) -> str:
    code, status = evidence.get("exit_code"), evidence.get("exit_status")
    if code is None:
        return f"ended with {evidence.get('result') or 'no word'}"
    return f"ended with exit code {status}" if code == "exited" else f"was {code} by {status}"


def _state_of(unit: Unit | None) -> str | None:
    if unit is None:
        return None
    if unit.load in ("not-found", "masked"):
        return unit.load
    return f"{unit.active} ({unit.why_not_started})"
