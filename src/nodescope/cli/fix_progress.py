"""Progress of `fix apply` and `fix undo`: lines on stderr, events in the recording, a summary."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.errors import ArchiveError, NodescopeError

if TYPE_CHECKING:
    from nodescope.records.json import Json
    from nodescope.remedy.step_news import StepNews

_RECORDED = frozenset({"applied", "failed", "undone", "kept"})
_SAID = {
    "applied": "done",
    "failed": "failed",
    "refused": "refused",
    "undone": "undone",
    "kept": "stays",
}


@dataclass(slots=True)
class StepProgress:
    """A listener to the news of steps."""

    plan: str
    steps: int
    archive: str | None
    _news: list[StepNews] = field(default_factory=list, init=False)
    _silent: bool = field(default=False, init=False)  # the recording takes no events

    def __call__(self, news: StepNews) -> None:
        """Print a piece of news, and leave it for the recorder."""
        called = f"{news.step.kind} {news.step.target.name or 'the node'}"
        head = f"step {news.number}/{self.steps}" if self.steps else f"step {news.number}"
        if news.outcome == "starting":
            print(f"{head}: {f'{news.note} ' if news.note else ''}{called} …", file=sys.stderr)
            return
        note = f": {news.note}" if news.note else ""
        print(f"{head}: {_SAID.get(news.outcome, news.outcome)}{note}", file=sys.stderr)
        self._news.append(news)
        if news.outcome in _RECORDED and self.archive is not None and not self._silent:
            self._record(news, called)

    def _record(self, news: StepNews, called: str) -> None:
        from nodescope.archive.marks import write_mark
        from nodescope.recorder.mark import make_mark

        target = news.step.target.name or "node"
        details: dict[str, Json] = {
            "plan": self.plan,
            "number": news.number,
            "step": news.step.kind,
            "target": target,
            "outcome": news.outcome,
        }
        text = f"{called}: {news.outcome}" + (f" ({news.note})" if news.note else "")
        try:
            write_mark(Path(self.archive or ""), make_mark(text, "fix_step", target, None, details))
        except ArchiveError as error:
            self._silent = True
            print(f"nodescope: steps are not recorded: {error}", file=sys.stderr)

    def document(self) -> dict[str, Json]:
        """Return what happened as JSON."""
        return {
            "plan": self.plan,
            "steps": [
                {
                    "number": each.number,
                    "kind": each.step.kind,
                    "target": each.step.target.name,
                    "outcome": each.outcome,
                    "note": each.note,
                }
                for each in self._news
            ],
        }


def asks(question: str) -> bool:
    """Ask on the terminal; return whether the answer is yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def print_error(error: NodescopeError) -> None:
    """Print an error with its hint, as the command line does."""
    print(f"nodescope: error: {error}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)
