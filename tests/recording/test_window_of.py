"""The window that was asked for, of the command line and of the HTTP API alike."""

from __future__ import annotations

import pytest

from nodescope.errors import UsageError
from nodescope.recording.window import MARGIN_NS, Window, window_of
from nodescope.records.view import Last, Moment, Span, When

WHOLE = Window(1000, 5000)


@pytest.mark.parametrize(
    ("when", "window"),
    [
        (None, WHOLE),
        (Span(), WHOLE),
        (Span(from_ns=2000), Window(2000, 5000)),
        (Span(to_ns=2000), Window(1000, 2000)),
        (Span(2000, 9000), Window(2000, 9000)),  # cut to what was recorded by whoever reads it
        (Last(300), Window(4700, 5000)),
        (Moment(3000, 50), Window(2950, 3050)),
        (Moment(3000), Window(3000 - MARGIN_NS, 3000 + MARGIN_NS)),
    ],
)
def test_what_is_not_given_is_the_recordings(when: When | None, window: Window) -> None:
    assert window_of(when, WHOLE) == window


def test_history_may_come_before_the_recording() -> None:
    assert window_of(None, WHOLE, since_ns=10) == Window(10, 5000)
    assert window_of(Span(from_ns=2000), WHOLE, since_ns=10) == Window(2000, 5000)


@pytest.mark.parametrize("when", [Span(3000, 2000), Span(3000, 3000)])
def test_a_window_has_a_length(when: Span) -> None:
    with pytest.raises(UsageError, match="ends before it starts"):
        window_of(when, WHOLE)


def test_the_end_of_a_recording_is_looked_up_only_if_it_is_asked_for() -> None:
    class Open:
        from_ns = 1000

        @property
        def to_ns(self) -> int:
            raise AssertionError("an open segment would be read")

    assert window_of(Span(to_ns=2000), Open()) == Window(1000, 2000)
    assert window_of(Moment(3000, 50), Open()) == Window(2950, 3050)
