"""A plan: the steps of a remedy, the facts they rest on, and what is refused, as data.

A plan is made on the node, shown, and applied later; it may travel through a file and a
review in between. It is bound to what was true when it was made (`Fact`): applied to
anything else it stops before its first step. `plan_documents` reads and writes it as JSON,
`planner` makes it, `actions/` has one module for each kind of step.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from nodescope.records.action import Target

PLAN_VERSION = 1

# One module of `actions/` each; the order in which a plan takes them is in `planner`.
StepName = Literal[
    "stop_unit",  # systemd's StopUnit, with a time-out
    "disable_unit",  # its links in /etc are removed
    "mask_unit",  # nothing can start it: a link to /dev/null, or a drop-in where that cannot be
    "set_unit_property",  # MemoryMax, TasksMax, CPUQuota, …, as `systemctl set-property` does
    "write_drop_in",  # a drop-in of our own for one unit, then daemon-reload
    "stop_container",  # by its engine
    "set_restart_policy",  # of a container, by its engine
    "set_container_limit",  # of a container, by its engine
    "reclaim_cgroup",  # memory.reclaim or memory.force_empty of one parent
    "delete_files",  # files that pin zombies, by consent for each owner
    "drop_caches",  # the page cache of the whole node
    "set_kernel_value",  # a sysctl, or a file of /sys
    "move_interrupt",  # smp_affinity_list of one interrupt
    "thaw",  # a frozen cgroup or file system
    "vacuum_journal",  # archived journal files down to a size
]
CannotUndo = Literal["never"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact that a plan rests on, as it was read when the plan was made.

    `kind` is one of `facts.READERS`; `subject` is the unit, container, file, setting or
    cgroup; `value` is what was read, or its digest where it is long.
    """

    kind: str
    subject: str
    value: str


@dataclass(frozen=True, slots=True)
class Predicted:
    """A quantity that a step will change, with its uncertainty."""

    what: str  # `zombies`, `restarts`, `memory_bytes`, …
    amount: float
    low: float
    high: float
    because: str  # what the figure was derived from, in words


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step, complete: nothing about it is decided at the moment of applying."""

    kind: StepName
    target: Target
    why: str
    arguments: Mapping[str, str]  # the kind's own module says which
    changes: tuple[str, ...]  # every file, setting and state it touches, as a person reads it
    command: tuple[str, ...]  # the command a person would type; shown, never run
    undo: str  # how it is taken back, in words; `never` if it cannot be
    predicts: tuple[Predicted, ...] = ()
    consent: str = ""  # the owner whose consent it needs beyond `--yes`; empty: none

    @property
    def reversible(self) -> bool:
        """Return whether `fix undo` takes it back."""
        return self.undo != "never"


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that the plan does not touch, and why."""

    target: Target
    reason: str
    override: str = ""  # the name to give with `--i-know`; empty: never done


@dataclass(frozen=True, slots=True)
class Baseline:
    """What `fix validate` compares with: the trouble as it was before the plan.

    `measure` names one of `validate`'s measures (`unit_restarts`, `container_restarts`,
    `cgroups_made`, `zombies`, `oom_kills`, `pegged_s`, `walk_s`, `resets`, `job_failures`),
    `role` whether it belongs to the mechanism or to the outcome. `count` is how many there were
    in `exposure_s` of time that was observed; of a level it is the last reading.
    """

    measure: str
    subject: str
    role: Literal["mechanism", "outcome"]
    count: float
    exposure_s: float
    slope_per_s: float | None = None  # of a level, such as zombies
    # How it varied; None: not known, which makes a proof take longer.
    overdispersion: float | None = None  # of its rate, beyond chance
    longest_gap_s: float | None = None  # from one to the next
    backoff_s: float | None = None  # by how much whoever restarts it may wait longer than so far
    slope_sd_per_s: float | None = None  # of a level's slope, from block to block …
    block_s: float | None = None  # … of this length
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A remedy for one node."""

    node: str  # host name
    boot: str  # boot id
    made_ns: int
    expires_ns: int
    rests_on: tuple[Fact, ...]
    steps: tuple[PlanStep, ...]
    refused: tuple[Refused, ...] = ()
    cannot: tuple[str, ...] = ()  # what it does not achieve, one sentence each
    baselines: tuple[Baseline, ...] = ()
    elsewhere: Mapping[str, str] | None = None  # the same change for review, by form
    archive: str | None = None  # the recording it was made from, and is proven by

    @property
    def id(self) -> str:
        """Return its name: a digest of the node, the facts and what the steps would do."""
        steps = [
            [each.kind, each.target.kind, each.target.name, sorted(each.arguments.items()),
             each.consent, each.undo]
            for each in self.steps
        ]  # fmt: skip
        whole = [self.node, self.boot, self.made_ns, self.expires_ns, facts_digest(self.rests_on)]
        return hashlib.sha256(json.dumps([*whole, steps]).encode()).hexdigest()[:12]


def facts_digest(facts: Iterable[Fact]) -> str:
    """Return the digest of facts, whatever their order."""
    rows = sorted([each.kind, each.subject, each.value] for each in facts)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
