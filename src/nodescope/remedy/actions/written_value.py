"""The part that steps share which write one value into a file of the kernel."""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.errors import RemedyError, SourceError
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.files.system_errors import translated
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep

_MOST_CHARACTERS = 4096


class WrittenValue:
    """An operation that writes a value, and writes the earlier one back."""

    def path(self, step: PlanStep, node: NodeAccess) -> Path:
        """Return the file; `NodescopeError` if the step names none."""
        raise NotImplementedError

    def value(self, step: PlanStep) -> str:
        """Return what is to be written."""
        raise NotImplementedError

    def read(self, step: PlanStep, node: NodeAccess) -> str:
        """Return the value now, as it would be written back."""
        raise NotImplementedError

    def same(self, one: str, other: str) -> bool:
        """Decide whether two values mean the same."""
        return one.split() == other.split()

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Return why the value cannot be written."""
        value = self.value(step)
        if not value or len(value) > _MOST_CHARACTERS or not value.isprintable():
            return f"not a value: {value!r}"
        try:
            now = self.read(step, node)
        except SourceError as error:
            return f"{self.path(step, node)} cannot be read: {error.reason}"
        if self.same(now, value):
            return f"{self.path(step, node)} has the value {value} already"
        return None

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read the value."""
        return {"value": self._now(step, node)}

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Write it, and read it back."""
        write_kernel_file(self.path(step, node), self.value(step))
        now = self._now(step, node)
        if not self.same(now, self.value(step)):
            raise RemedyError(
                f"{self.path(step, node)} is {now} after {self.value(step)} was written",
                hint="the kernel or another program decides this value",
            )
        return {"value": now}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by the value."""
        now = self._now(step, node)
        if self.same(now, self.value(step)):
            return "after"
        return "before" if self.same(now, str(before.get("value"))) else "other"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Write the earlier value back, unless somebody wrote another since."""
        path, was, now = self.path(step, node), str(before.get("value")), self._now(step, node)
        if self.same(now, was):
            return UndoOutcome((f"{path} is {was}",))
        if not self.same(now, self.value(step)):
            return UndoOutcome((), (f"{path}: somebody wrote {now} since; it stays",))
        write_kernel_file(path, was)
        if not self.same(now := self._now(step, node), was):
            raise RemedyError(f"{path} is {now} after {was} was written back")
        return UndoOutcome((f"{path} is {was}",))

    def _now(self, step: PlanStep, node: NodeAccess) -> str:
        try:
            return self.read(step, node)
        except SourceError as error:
            raise RemedyError(str(error), hint=error.hint) from error


def write_kernel_file(path: Path, text: str) -> None:
    """Write to a file of the kernel that exists, in one call."""
    with translated(str(path)):
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
