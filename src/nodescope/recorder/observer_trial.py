"""Tries every observer once, for `nodescope doctor`: does it work here, and if not, why."""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import NodescopeError, SourceAbsent, SourceDenied
from nodescope.ingest.observation import Observation
from nodescope.quantities import format_duration
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.catalogue import CATALOGUE, ObserverEntry, make_observers
from nodescope.records.node_tables import UnitRow
from nodescope.sources.access import Access, State
from nodescope.sources.access.perf_verdicts import MOUNT_TRACEFS, TRACEFS_VOLUME
from nodescope.sources.access.privileges import Privileges
from nodescope.sources.access.probe import is_tracefs_mounted
from nodescope.sources.access.verdict import Remedy, allow_capability

_PATIENCE_S = 15.0
# What allows reading it where the kernel refuses; the others talk to daemons of root.
_CAPABILITIES = {
    "kernel_log": ("syslog", "perfmon"),
    "cgroup_churn": ("perfmon", "dac_read_search"),
    "memory_cgroups": ("dac_read_search",),
    "cgroups": ("dac_read_search",),
    "nics": ("dac_read_search",),
    "limits": ("sys_ptrace", "dac_read_search"),
    "unit_insides": ("net_admin",),
    "blocked_tasks": ("sys_admin", "sys_ptrace"),
}
_AS_ROOT = Remedy(("sudo nodescope record",))
# Where the host's systemd is, seen from a container that has its root at /host.
_HOST = Path("/host")
_HOST_BUS = "unix:path=/host/run/dbus/system_bus_socket"
_NAME_SYSTEMD = Remedy(
    (f"nodescope record --systemd-bus {_HOST_BUS} --journal /host/var/log/journal",),
    "volumes: [{name: host, hostPath: {path: /}}], mounted read-only at /host",
)
# Without a host's root there is nothing to name: a container needs the mount first.
_MOUNT_HOST = Remedy((), _NAME_SYSTEMD.manifest)
_REFUSED = tuple(os.strerror(code) for code in (errno.EPERM, errno.EACCES))


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of asking one observer."""

    said: Observation | None
    error: Exception | None
    interval_ns: int
    took_ns: int


def try_observers(setting: Setting, privileges: Privileges) -> list[Access]:
    """One line for each observer of the catalogue."""
    return [_judge(entry, _try(entry, setting), privileges) for entry in CATALOGUE]


def _try(entry: ObserverEntry, setting: Setting) -> Trial | None:
    """Ask in a thread, so that one that waits for somebody does not hold up the rest."""
    answers: queue.SimpleQueue[Trial] = queue.SimpleQueue()
    thread = threading.Thread(
        target=lambda: answers.put(_ask(entry, setting)), name=f"try-{entry.name}", daemon=True
    )
    thread.start()
    try:
        return answers.get(timeout=_PATIENCE_S)
    except queue.Empty:
        return None


def _ask(entry: ObserverEntry, setting: Setting) -> Trial:
    started = time.monotonic_ns()
    said: Observation | None = None
    failure: Exception | None = None
    interval = 0
    try:
        others = {each.name for each in CATALOGUE} - {entry.name}
        observer = make_observers(setting, others)[entry.name]
        interval = observer.interval_ns
        try:
            observer.begin_segment()
            said = observer.observe(time.monotonic_ns())
        finally:
            observer.close()
    except Exception as error:  # noqa: BLE001 the supervised boundary, as in `observing`
        failure = error
    return Trial(said, failure, interval, time.monotonic_ns() - started)


def _judge(entry: ObserverEntry, trial: Trial | None, privileges: Privileges) -> Access:
    what = f"{entry.name}: {entry.help}"
    if trial is None:
        why = f"did not answer within {_PATIENCE_S:.0f} s"
        return Access(entry.name, what, State.DEGRADED, why)
    if trial.error is not None:
        return _judge_error(entry, what, trial.error, privileges)
    assert trial.said is not None
    degraded = [event.message for event in trial.said.events if event.kind == "source_degraded"]
    if degraded:
        why = "; ".join(degraded)
        remedy = Remedy()
        if any(refusal in why for refusal in _REFUSED):
            remedy = _allow(entry, privileges)
        return Access(entry.name, what, State.DEGRADED, why, remedy.commands, remedy.manifest)
    if lack := _find_lack(trial.said):
        named = _NAME_SYSTEMD if (_HOST / "proc").is_dir() else _MOUNT_HOST
        return Access(entry.name, what, State.DEGRADED, lack, named.commands, named.manifest)
    rows = len(trial.said.rows)
    told = f"{rows:,} rows" if rows else "nothing to tell now"
    pace = f"asked every {format_duration(trial.interval_ns)}"
    return Access(entry.name, what, State.WORKS, f"{told}, {pace}")


def _find_lack(said: Observation) -> str | None:
    """Return what an answer lacks though nobody reported an error; None if it is whole."""
    units = said.rows_of(UnitRow)
    if not units or any(row.active is not None or row.starts is not None for row in units):
        return None
    return (
        f"{len(units):,} units are known by their files alone: neither systemd's bus nor the "
        "journal was found, so their states, starts and failures are not seen: systemd does not "
        "run here, or in a container its host's root is not mounted (at /host)"
    )


def _judge_error(
    entry: ObserverEntry, what: str, error: Exception, privileges: Privileges
) -> Access:
    if isinstance(error, SourceAbsent):
        return Access(entry.name, what, State.ABSENT, str(error))
    if isinstance(error, SourceDenied):
        why = f"{error}; {error.hint}" if error.hint else str(error)
        remedy = _allow(entry, privileges)
        return Access(entry.name, what, State.DENIED, why, remedy.commands, remedy.manifest)
    if isinstance(error, NodescopeError):
        return Access(entry.name, what, State.DEGRADED, str(error))
    why = f"a defect of ours: {type(error).__name__}: {error}"
    return Access(entry.name, what, State.DEGRADED, why)


def _allow(entry: ObserverEntry, privileges: Privileges) -> Remedy:
    """Return the change that allows a refused observer."""
    wanted = _CAPABILITIES.get(entry.name)
    if wanted is None:
        return _AS_ROOT
    missing = [name for name in wanted if not privileges.holds(privileges.least(name))]
    remedy = allow_capability(privileges, (missing or wanted)[0])
    if entry.name != "cgroup_churn" or is_tracefs_mounted():
        return remedy
    if not missing:
        return Remedy((MOUNT_TRACEFS,), TRACEFS_VOLUME)
    # Capabilities that let us read it do not let us mount it.
    commands = tuple(f"{MOUNT_TRACEFS} && {command}" for command in remedy.commands)
    return Remedy(commands, f"{remedy.manifest}; {TRACEFS_VOLUME}")
