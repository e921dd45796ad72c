from __future__ import annotations

from pathlib import Path

from nodescope.records.details import fields_of
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.reference import render_details, render_kinds, renew_page

PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    renew = "python -m nodescope.records.reference docs/events.md"
    assert renew_page(page) == page, f"run: {renew}"


def test_what_is_serious() -> None:
    """What must be kept whatever retention says, by the kinds that tell it."""
    resets_and_lockups = ["nic_reset", "nic_tx_timeout", "soft_lockup", "hard_lockup"]
    of_the_node = ["core_held", "zombies_warn", "zombies_critical", "unit_loop"]
    for name in resets_and_lockups + of_the_node:
        assert EVENT_KINDS[name].serious, name
    for name in ("recorder_started", "unit_restart", "mark", "frozen"):
        assert not EVENT_KINDS[name].serious, name


def test_every_kind_is_in_it() -> None:
    table = render_kinds()
    for kind in EVENT_KINDS.values():
        assert f"| `{kind.name}` | {kind.help} |" in table


def test_every_detail_is_in_it() -> None:
    page = render_details()
    for kind in EVENT_KINDS.values():
        fields = fields_of(kind.details)
        assert (f"`{kind.name}`" in page) == bool(fields)
        for each in fields:
            assert f"| `{each.key}` | {each.type} | {each.help}" in page
