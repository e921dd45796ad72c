"""How far a window can be trusted."""

from __future__ import annotations

from dataclasses import asdict

from nodescope.analysis.quality import Quality, assess
from nodescope.pictures.answer_size import cut
from nodescope.quantities import MILLISECOND_NS
from nodescope.web.answers.replies import json_reply
from nodescope.web.question import Question, Reply, to_ms

MOST = 1000  # gaps and clock steps listed


def quality(question: Question) -> Reply:
    """Return what a window lacks: lost, unnamed, truncated or unobserved samples."""
    window = question.window
    found = assess(question.recording, window, question.filter, question.parts())
    return json_reply(
        {"from_ms": to_ms(window.from_ns), "to_ms": to_ms(window.to_ns), **_document(found)}
    )


def _document(found: Quality) -> dict[str, object]:
    document = asdict(found)
    late_ns = document.pop("late_ns")
    return {
        **document,
        "late_ms": None if late_ns is None else late_ns / MILLISECOND_NS,
        "gap_count": len(found.gaps),
        "gaps": [
            {
                "from_ms": to_ms(gap.from_ns),
                "to_ms": to_ms(gap.to_ns),
                "source": cut(gap.source),
                "cpu": gap.cpu,
                "lost": gap.lost,
                "reason": cut(gap.reason, 200),
            }
            for gap in found.gaps[:MOST]
        ],
        "clock_steps": [
            {"time_ms": to_ms(step.time_ns), "by_ms": to_ms(step.by_ns)}
            for step in found.clock_steps[:MOST]
        ],
        "lost_share": found.lost_share,
        "kernel_unresolved_share": found.kernel_unresolved_share,
        "user_unresolved_share": found.user_unresolved_share,
        "truncated_share": found.truncated_share,
        "folded_share": found.folded_share,
        "unseen_ms": found.unseen_ns / MILLISECOND_NS,
    }
