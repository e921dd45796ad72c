from __future__ import annotations

from nodescope.web.looking import find_look

AT_NS = 1_780_000_000_000_000_000


def test_a_window_and_its_filters() -> None:
    look = find_look(
        "nodescope flame --cpu 39 --mode kernel --from 2026-05-28T20:26:30.500Z "
        "--to 2026-05-28T20:26:40.000Z",
        AT_NS,
    )
    assert look == {
        "view": "flame",
        "cpu": "39",
        "mode": "kernel",
        "from_ms": 1779999990500.0,
        "to_ms": 1780000000000.0,
    }


def test_a_moment_and_what_surrounds_it() -> None:
    look = find_look("nodescope events --at 2026-05-28T20:26:40.000Z --around 30s", AT_NS)
    assert look == {"view": "events", "from_ms": 1779999970000.0, "to_ms": 1780000030000.0}


def test_a_command_without_a_time_is_about_the_symptom() -> None:
    look = find_look("nodescope zombies --parents", AT_NS)
    assert look["view"] == "facts"
    assert look["from_ms"] < look["to_ms"] == AT_NS / 1e6


def test_names_that_are_no_words_do_no_harm() -> None:
    for command in ("", "nodescope", "nodescope top --comm it's --at x --around '", 'a "'):
        look = find_look(command, AT_NS)
        assert look["from_ms"] < look["to_ms"]
