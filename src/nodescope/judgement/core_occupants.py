"""Who had a core: whose the samples of a core in a span are.

By name of the command, by thread or by cgroup; of a recording's columns, or of samples as
they come. One counting and one set of shares, so that the recorder, `diagnose` and a person
who asks about a moment name the same process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from nodescope.numbering import count_distinct

if TYPE_CHECKING:  # the recorder starts without what only readers need
    from nodescope.recording.sample_columns import SampleColumns

MOST_OF_IT = 0.5  # of a core's samples: with less, nobody in particular had it
ALL_BUT_HOUSEKEEPING = 0.9  # of one command: with less the core is shared and busy, not pegged
IN_ONE_CGROUP = 0.8  # of a command's samples: with less its cgroup does not say whose it is

Key = TypeVar("Key", int, str)


class Occupant(NamedTuple, Generic[Key]):
    """Who has most of the samples, how many, and of how many."""

    key: Key
    samples: int
    share: float


@dataclass(slots=True)
class Occupants(Generic[Key]):
    """Samples by whose they are."""

    samples: Counter[Key] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """How many samples there are in all."""
        return self.samples.total()

    def find_main(self, least: float = 0.0) -> Occupant[Key] | None:
        """Return who has most, if that is at least such a share of all."""
        if not self.samples:
            return None
        key, samples = self.samples.most_common(1)[0]
        share = samples / self.total
        return Occupant(key, samples, share) if share >= least else None

    def add(self, keys: Iterable[Key], counts: Iterable[int]) -> None:
        """Count further samples."""
        for key, count in zip(keys, counts, strict=True):
            self.samples[key] += count


def count_commands(parts: Iterable[SampleColumns], cpu: int) -> Occupants[str]:
    """Count the samples of a core by command."""
    found: Occupants[str] = Occupants()
    for part in parts:
        codes = part.profile_comm[part.profile[part.cpu == cpu]]
        numbers, counts = count_distinct(codes)
        found.add((part.comms[code] for code in numbers.tolist()), counts.tolist())
    return found


@dataclass(frozen=True, slots=True)
class CoreHolder:
    """The command that had most of a core, of one process or of many with that name."""

    comm: str
    alone: bool  # one process had most of it

    def describe(self) -> str:
        """Return who it was, in words that name a process only if it was one."""
        return self.comm if self.alone else f"many processes named {self.comm}"


def find_holder(parts: Iterable[SampleColumns], cpu: int) -> CoreHolder | None:
    """Return who had most of a core's samples; None if no process and no command did."""
    both: Counter[tuple[int, str]] = Counter()
    for part in parts:
        mine = part.cpu == cpu
        names = len(part.comms)
        numbers, counts = count_distinct(
            part.pid[mine] * names + part.profile_comm[part.profile[mine]]
        )
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            pid, code = divmod(number, names)
            both[pid, part.comms[code]] += count
    processes: Occupants[int] = Occupants()
    commands: Occupants[str] = Occupants()
    processes.add((pid for pid, _ in both), both.values())
    commands.add((comm for _, comm in both), both.values())
    if (process := processes.find_main(MOST_OF_IT)) is not None:
        threads = {comm: count for (pid, comm), count in both.items() if pid == process.key}
        return CoreHolder(max(threads, key=lambda comm: threads[comm]), alone=True)
    main = commands.find_main(MOST_OF_IT)
    return None if main is None else CoreHolder(main.key, alone=False)


def count_cgroups(parts: Iterable[SampleColumns], cpu: int, comm: str) -> Occupants[str]:
    """Count a command's samples on a core by cgroup; `""` where the cgroup is not known."""
    found: Occupants[str] = Occupants()
    for part in parts:
        if comm not in part.comms:
            continue
        mine = (part.cpu == cpu) & (part.profile_comm[part.profile] == part.comms.index(comm))
        codes, counts = count_distinct(part.cgroup[mine])
        names = (part.cgroups[code] if code >= 0 else "" for code in codes.tolist())
        found.add(names, counts.tolist())
    return found


def count_cgroups_of(
    parts: Iterable[SampleColumns], comm: str | None, pid: int | None
) -> Occupants[str]:
    """Count the samples of a process on all cores by cgroup; without `pid`, of a command."""
    found: Occupants[str] = Occupants()
    for part in parts:
        if pid is not None:
            mine = (part.pid == pid) | (part.pid + part.thread == pid)
        elif comm in part.comms:
            mine = part.profile_comm[part.profile] == part.comms.index(comm)
        else:
            continue
        codes, counts = count_distinct(part.cgroup[mine])
        names = (part.cgroups[code] if code >= 0 else "" for code in codes.tolist())
        found.add(names, counts.tolist())
    return found


def count_processes(parts: Iterable[SampleColumns], cpu: int, comm: str) -> Occupants[int]:
    """Count a command's samples on a core by process."""
    found: Occupants[int] = Occupants()
    for part in parts:
        if comm in part.comms:
            names = part.profile_comm[part.profile]
            pids, counts = count_distinct(
                part.pid[(part.cpu == cpu) & (names == part.comms.index(comm))]
            )
            found.add(pids.tolist(), counts.tolist())
    return found


def describe_processes(comm: str, by: Occupants[int]) -> str:
    """Return a command with its process, where one had nearly all of it; else how many it was."""
    main = by.find_main(ALL_BUT_HOUSEKEEPING)
    if main is not None:
        return f"{comm} ({main.key})"
    return f"{len(by.samples)} processes named {comm}" if by.samples else comm


def count_cores_of(parts: Iterable[SampleColumns], comm: str) -> Occupants[int]:
    """Count a command's samples by core."""
    found: Occupants[int] = Occupants()
    for part in parts:
        if comm in part.comms:
            mine = part.profile_comm[part.profile] == part.comms.index(comm)
            cpus, counts = count_distinct(part.cpu[mine])
            found.add(cpus.tolist(), counts.tolist())
    return found


def derive_kernel_share(parts: Iterable[SampleColumns], cpu: int) -> float:
    """Return which share of a core's samples were taken in the kernel; 0 without samples."""
    kernel = total = 0
    for part in parts:
        profile = part.profile[part.cpu == cpu]
        total += len(profile)
        kernel += int(part.profile_kernel[profile].sum())
    return kernel / total if total else 0.0
