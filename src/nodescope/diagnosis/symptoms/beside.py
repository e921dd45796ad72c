"""What was also seen: crashes and faults of programs, which are no incidents by themselves."""

from __future__ import annotations

from collections import Counter

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Missing
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.view import Span, View

ALSO_SEEN = "also seen"
# A program's own faults: worth a line, though no harm to the node.
_KINDS = ("process_crash", "gpu_app_fault", "gpu_error")
_MOST_NAMED = 3


def describe_beside(case: Case) -> list[Missing]:
    """Return one entry for the faults of programs in the window; none if there were none."""
    events = case.events_of(*_KINDS)
    if not events:
        return []
    parts = []
    for kind, count in Counter(event.kind for event in events).most_common():
        names = list(dict.fromkeys(each.subject for each in events if each.kind == kind))
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        named = f"{', '.join(names[:_MOST_NAMED])}{more}"
        parts.append(f"{count} × {kind} ({EVENT_KINDS[kind].help}: {named})")
    return [
        Missing(
            ALSO_SEEN, f"{'; '.join(parts)}; a fault of one program, which was not followed",
            show=View("events", Span(case.window.from_ns, case.window.to_ns), kinds=_KINDS),
        )
    ]  # fmt: skip
