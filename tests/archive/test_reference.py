from __future__ import annotations

from pathlib import Path

from nodescope.archive import layout
from nodescope.archive.reference import render_reference, replace_reference
from nodescope.records import TABLES

PAGE = Path(__file__).parents[2] / "docs" / "archive.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    renew = "python -m nodescope.archive.reference docs/archive.md"
    assert replace_reference(page) == page, f"run: {renew}"


def test_it_tells_the_format_and_every_place() -> None:
    page = PAGE.read_text()
    assert f"**The format** is one number, now {layout.FORMAT}," in page
    assert f"\n  {layout.ARCHIVE_FILE} " in page
    assert f"\n  {layout.LOCK_FILE} " in page
    for folder in (layout.OPEN_DIRECTORY, layout.SEALED_DIRECTORY):
        assert f"\n  {folder}/NAME/ " in page
    for folder in (layout.FROZEN_DIRECTORY, layout.MARKS_DIRECTORY):
        assert f"\n  {folder}/ID.json " in page


def test_every_column_is_in_it() -> None:
    reference = render_reference()
    for table in TABLES.values():
        assert f"### {table.name}\n" in reference
        for column in table.columns:
            assert f"| `{column.name}` | {column.type}" in reference
