from __future__ import annotations

from pathlib import Path

from nodescope.records import EVENT_KINDS
from nodescope.records.reference import render_kinds, replace_kinds

PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    renew = "python -m nodescope.records.reference docs/events.md"
    assert replace_kinds(page) == page, f"run: {renew}"


def test_every_kind_is_in_it() -> None:
    table = render_kinds()
    for kind in EVENT_KINDS.values():
        assert f"| `{kind.name}` | {kind.help} |" in table
