"""The rules of a diagnosis are data: code names no mechanism, and the tables agree."""

from __future__ import annotations

import re
from pathlib import Path

import nodescope
from nodescope.diagnosis.rules.mechanism import load_mechanisms
from nodescope.diagnosis.rules.suspects import THROTTLING, ZOMBIES, load_suspects
from nodescope.records.event_kinds import EVENT_KINDS, SYMPTOM_RANKS

SOURCE = Path(nodescope.__file__).parent


def test_code_has_no_names_of_mechanisms_in_it() -> None:
    names = "|".join(re.escape(each.name) for each in load_mechanisms())
    quoted = re.compile(rf"""["'](?:{names})["']""")
    # What the kernel or a table of ours calls the same is no mechanism.
    allowed = {"compaction", "conntrack", "fsnotify", "swapping"}
    found = [
        f"{path.relative_to(SOURCE)}: {match[0]}"
        for path in sorted((SOURCE / "diagnosis").rglob("*.py"))
        for match in quoted.finditer(path.read_text())
        if match[0][1:-1] not in allowed
    ]
    assert found == []


def test_tables_name_mechanisms_that_exist() -> None:
    known = {each.name for each in load_mechanisms()}
    assert {name for each in load_suspects().values() for name in each.mechanisms} <= known
    assert {each.otherwise for each in load_mechanisms()} - {None} <= known
    assert {THROTTLING, ZOMBIES} <= load_suspects().keys()


def test_a_symptom_is_a_serious_kind_of_event_with_a_rank_of_its_own() -> None:
    assert all(EVENT_KINDS[kind].serious for kind in SYMPTOM_RANKS)
    assert len(set(SYMPTOM_RANKS.values())) == len(SYMPTOM_RANKS)
    assert all(kind.rank is not None for kind in EVENT_KINDS.values() if kind.lag is not None)


def test_every_serious_kind_is_a_symptom_that_leads_somewhere_or_a_condition() -> None:
    for kind in EVENT_KINDS.values():
        if kind.serious:
            assert (kind.rank is not None) != kind.condition, kind.name
            assert kind.condition or (kind.way is not None) != bool(kind.ends), kind.name
        else:
            assert not kind.condition, kind.name
            assert (kind.rank, kind.way) == (None, None), kind.name
