"""Names on a bus, and who listens for their signals."""

from __future__ import annotations

from nodescope.sources.systemd.bus_names import parse_watchers


def test_who_asked_for_signals_of_a_name_watches_it() -> None:
    rules = {
        ":1.1": ["type='signal',sender='org.example.A'", "type='signal',sender='org.example.A'"],
        ":1.2": ["type='signal',sender='org.example.A',member='X'", "type='signal'"],
        ":1.3": [],
        ":1.4": ["type='signal',sender='org.example.B'"],  # left meanwhile
    }
    pids = {":1.1": 10, ":1.2": 20, ":1.3": 30}
    assert parse_watchers(rules, pids) == {"org.example.A": (10, 20)}
