from __future__ import annotations

from pathlib import Path

from nodescope.archive.reference import render_reference, replace_reference
from nodescope.records import TABLES

PAGE = Path(__file__).parents[2] / "docs" / "archive.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    renew = "python -m nodescope.archive.reference docs/archive.md"
    assert replace_reference(page) == page, f"run: {renew}"


def test_every_column_is_in_it() -> None:
    reference = render_reference()
    for table in TABLES.values():
        assert f"### {table.name}\n" in reference
        for column in table.columns:
            assert f"| `{column.name}` | {column.type}" in reference
