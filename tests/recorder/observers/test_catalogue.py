"""Observers and the tables they fill are declared once, and agree with what they write."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

import pytest

from nodescope.errors import SourceError, UsageError
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.catalogue import CATALOGUE, NAMES, ObserverEntry, make_observers
from nodescope.records.node_tables import NODE_TABLES, SourceCostRow
from nodescope.records.table import Table
from nodescope.sources.places import Places

OWN = SourceCostRow.table()  # filled by the schedule of the observers itself


@pytest.mark.parametrize("table", NODE_TABLES, ids=lambda table: table.name)
def test_every_table_of_the_node_names_observers_that_there_are(table: Table) -> None:
    assert set(table.observers) <= set(NAMES)
    assert bool(table.observers) != (table is OWN)


def test_an_observer_knows_the_tables_that_name_it() -> None:
    tables = {entry.name: entry.tables for entry in CATALOGUE}
    assert tables["softnet"] == ("softnet", "interrupts")
    assert tables["cgroups"] == ("pressure", "cgroups", "limits", "trouble_counts")
    assert tables["marks"] == ()


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_every_entry_has_a_module_that_makes_it(entry: ObserverEntry) -> None:
    assert callable(importlib.import_module(f"nodescope.recorder.observers.{entry.name}").make)


@pytest.mark.live
@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_what_an_observer_writes_here_is_of_its_tables(
    entry: ObserverEntry, tmp_path: Path
) -> None:
    without = [name for name in NAMES if name != entry.name]
    (observer,) = make_observers(Setting(Places(), tmp_path / "none"), without).values()
    try:
        said = observer.observe(time.monotonic_ns())
    except SourceError:
        pytest.skip(f"no {entry.name} here")
    finally:
        observer.close()
    assert {row.table().name for row in said.rows} <= set(entry.tables)


def test_one_that_there_is_not_cannot_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        make_observers(Setting(Places(), tmp_path), ["no such"])
