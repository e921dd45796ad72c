"""Facts of one unit, whether the bus, the journal or its files report them."""

from __future__ import annotations

from dataclasses import dataclass

TYPES = (
    "service",
    "socket",
    "target",
    "timer",
    "path",
    "mount",
    "automount",
    "swap",
    "device",
    "slice",
    "scope",
)
_ENDS = {1: "exited", 2: "killed", 3: "dumped"}  # CLD_EXITED, CLD_KILLED, CLD_DUMPED


@dataclass(frozen=True, slots=True)
class Check:
    """A condition or an assertion of a unit; `met` is None while it was not tried."""

    name: str
    parameter: str
    negated: bool = False
    trigger: bool = False
    met: bool | None = None

    def __str__(self) -> str:
        signs = ("|" if self.trigger else "") + ("!" if self.negated else "")
        return f"{self.name}={signs}{self.parameter}"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit; None is what nobody told. Times are microseconds of the monotonic clock."""

    name: str
    load: str | None = None
    active: str | None = None
    sub: str | None = None
    result: str | None = None
    type: str | None = None
    restarts: int | None = None
    restart_policy: str | None = None
    restart_wait_us: int | None = None
    limit_burst: int | None = None  # so many starts within the interval are allowed; 0: any
    limit_interval_us: int | None = None
    main_pid: int | None = None
    exit_kind: str | None = None
    exit_status: int | None = None
    invocation: str | None = None
    file_state: str | None = None
    preset: str | None = None
    preset_rule: str | None = None  # the line of a preset that names it; None: the default
    vendor: str | None = None
    fragment: str | None = None
    wanted_by: tuple[str, ...] = ()
    image_wants: bool = False  # a link that came with the image wants it
    configured: bool = False  # an administrator changed it by a drop-in
    package_needed: bool = False  # its package is one that others need
    # Units that need it, wait for it or start it; None: nobody knows.
    dependants: tuple[str, ...] | None = ()
    stops_with: tuple[str, ...] = ()  # units that systemd stops together with it
    # Targets that it pulls in and comes before: `network.target` and others of systemd.special(7).
    provides: tuple[str, ...] = ()
    bus_name: str | None = None
    terminal: bool = False  # it is for whoever sits at one
    control_group: str | None = None
    cgroup: str | None = None
    conditions: tuple[Check, ...] = ()
    asserts: tuple[Check, ...] = ()
    condition_met: bool | None = None  # of all conditions, when they were last tried
    assert_met: bool | None = None
    requires: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    triggers: str | None = None  # the unit that a socket, timer or path names
    job: int = 0
    active_since_us: int | None = None
    state_since_us: int | None = None
    inactive_since_us: int | None = None
    main_started_us: int | None = None
    main_exited_us: int | None = None
    tried_us: int | None = None  # when its conditions were last tried
    asserted_us: int | None = None
    why_not_started: str | None = None

    @property
    def suffix(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def enabled(self) -> bool:
        return self.file_state in ("enabled", "enabled-runtime")


def describe_end(code: int | None) -> str | None:
    """How a process ended, from the number that `waitid` gives; None if it did not."""
    return _ENDS.get(code or 0)


def slice_path(slice_name: str) -> str:
    """The cgroup of a slice: `a-b.slice` lies in `a.slice`."""
    stem = slice_name.removesuffix(".slice")
    if not stem or stem == "-":
        return ""
    parts = stem.split("-")
    return "".join(f"/{'-'.join(parts[: count + 1])}.slice" for count in range(len(parts)))
