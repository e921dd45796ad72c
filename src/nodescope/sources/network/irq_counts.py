"""How often each core served each of some interrupts.

`/sys/kernel/irq/N/per_cpu_count` (since 4.9) tells it of one interrupt; reading
`/proc/interrupts` makes the kernel write thousands of lines of a hundred
columns, and is done only where there is nothing better.

What the kernel wrote is handed on as it is: most of it is the same as a second
ago, and comparing bytes is cheaper than parsing them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from nodescope.errors import MalformedSource, SourceAbsent, SourceError
from nodescope.quantities import parse_cpu_list
from nodescope.sources.kernel_files import KeptFile, read_text

_MOST_FILES = 256  # descriptors; a node with more such interrupts reads the one large file


class CountReader(Protocol):
    """Reads counts; `cpus` says which core each number of a text belongs to."""

    @property
    def cpus(self) -> Sequence[int]: ...

    def read(self) -> dict[int, bytes]:
        """By interrupt, the counts as the kernel wrote them; one that is gone is left out."""
        ...

    def close(self) -> None: ...


def open_counts(proc: Path, sys: Path, irqs: Collection[int]) -> CountReader:
    """The cheaper way that this node has."""
    if len(irqs) <= _MOST_FILES:
        try:
            return EachCount(sys, irqs)
        except SourceError:
            pass
    return TableCounts(proc, irqs)


def parse_counts(text: bytes) -> list[int]:
    """The numbers of one interrupt."""
    return [int(number) for number in text.replace(b",", b" ").split()]


class EachCount:
    """A file for each interrupt, and all possible cores in it."""

    def __init__(self, sys: Path, irqs: Collection[int]) -> None:
        possible = read_text(sys / "devices/system/cpu/possible")
        if not possible:
            raise SourceAbsent(sys / "devices/system/cpu/possible", "no list of cores")
        self.cpus: Sequence[int] = parse_cpu_list(possible)
        self._files: dict[int, KeptFile] = {}
        try:
            for irq in irqs:
                self._files[irq] = KeptFile(sys / f"kernel/irq/{irq}/per_cpu_count")
        except SourceError:
            self.close()
            raise

    def read(self) -> dict[int, bytes]:
        counts = {}
        for irq, file in self._files.items():
            try:
                counts[irq] = file.read_once(16_384)
            except SourceError:  # its driver gave it back
                continue
        return counts

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}


class TableCounts:
    """`/proc/interrupts`: the lines of some interrupts, found where they were found before."""

    def __init__(self, proc: Path, irqs: Collection[int]) -> None:
        self._file = KeptFile(proc / "interrupts")
        self._labels = {irq: b"%d:" % irq for irq in irqs}
        self._starts: dict[int, int] = {}
        self._header = b""
        self.cpus: Sequence[int] = ()

    def read(self) -> dict[int, bytes]:
        content = self._file.read()
        header = content[: content.find(b"\n")]
        if header != self._header:
            self._header = header
            self.cpus = [int(name[3:]) for name in header.split()]
            self._starts = {}
        if not self.cpus:
            raise MalformedSource(self._file.path, "no header of cores", 1)
        counts = {}
        for irq, label in self._labels.items():
            start = self._starts.get(irq, -1)
            if start < 0 or content[start : start + len(label)] != label:
                start = self._find(content, label)
                if start < 0:
                    self._starts.pop(irq, None)
                    continue
                self._starts[irq] = start
            end = content.find(b"\n", start)
            words = content[start + len(label) : end].split(None, len(self.cpus))
            counts[irq] = b" ".join(words[: len(self.cpus)])
        return counts

    @staticmethod
    def _find(content: bytes, label: bytes) -> int:
        """Where the line of this label starts: it stands first, after blanks alone."""
        at = content.find(label)
        while at >= 0:
            line = content.rfind(b"\n", 0, at) + 1
            if not content[line:at].strip():
                return at
            at = content.find(label, at + 1)
        return -1

    def close(self) -> None:
        self._file.close()
