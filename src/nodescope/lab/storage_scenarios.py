"""A unit whose file system is full, does not answer, or whose device reports errors.

The file systems are real ext4 in files on loop devices; nothing is written to the kernel's
log. A device that fails is one whose file lies on a tmpfs that is too small for it. One
that does not answer is one whose file lies on a file system that is frozen, and the
kernel is asked to report a blocked task after seconds instead of minutes.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.lab import guest
from nodescope.lab.processes import sleep_beside
from nodescope.lab.scenario import Scenario, ScenarioRun, Truth
from nodescope.lab.unit_stage import act_unit, get_silent, prepare_unit
from nodescope.sources.kernel_files import read_text

_HUNG = Path("/proc/sys/kernel")
_HUNG_AFTER_S = 8
_MIB = 1 << 20
_WRITES_S = 4.0  # before the freeze


def _require(*programs: str) -> None:
    guest.require()
    for program in ("mkfs.ext4", "truncate", *programs):
        if shutil.which(program) is None:
            raise UsageError(f"{program} is not installed", hint="Debian: `apt install e2fsprogs`")
    if not Path("/dev/loop-control").exists():
        raise UsageError("this kernel has no loop devices: /dev/loop-control is missing")


def _require_watch() -> None:
    _require("fsfreeze")
    if not (_HUNG / "hung_task_timeout_secs").exists():
        raise UsageError("this kernel does not report blocked tasks: CONFIG_DETECT_HUNG_TASK")
    if (read_text(_HUNG / "hung_task_panic") or "0") != "0":
        raise UsageError("this kernel panics on a blocked task", hint="hung_task_panic must be 0")


def _prepare_full(run: ScenarioRun) -> None:
    size = run.variation.between(48, 96)
    disk = run.ground.image("disk", f"{size}M", on=run.ground.folder("images", on_disk=True))
    wanted = size // 2 if run.healthy else size + 20
    _prepare_writer(run, disk, "fill", wanted, round(0.4 * run.strength / size, 3))


def _act_full(run: ScenarioRun) -> Truth:
    act_unit(run, run.strength)
    if run.healthy:
        return get_silent(run, "disk-full")
    return _of_disk(run, "disk-full", ("fs_full",), (run.names["unit"],))


def _prepare_errors(run: ScenarioRun) -> None:
    backing_mib = run.variation.between(16, 24)
    backing = run.ground.folder("images", tmpfs=f"{backing_mib}m")
    disk = run.ground.image("disk", "64M", on=backing, options="errors=remount-ro")
    # Out of sight, as what is behind a virtual disk is: the loop device keeps it.
    subprocess.run(["umount", "--lazy", str(backing)], check=True)
    wanted = backing_mib // 3 if run.healthy else 44
    _prepare_writer(run, disk, "fill", wanted, run.variation.seconds(0.05, 0.15))


def _act_errors(run: ScenarioRun) -> Truth:
    act_unit(run, run.strength)
    if run.healthy:
        return get_silent(run, "io-error")
    roots = (run.names["device"], str(run.paths["disk"]))
    return _of_disk(run, "io-error", ("disk_io_error", "fs_error", "fs_readonly"), roots)


def _prepare_blocked(run: ScenarioRun) -> None:
    """Put a file system into a file of another one, which can be frozen."""
    outer = run.ground.image("outer", "256M", on=run.ground.folder("images", on_disk=True))
    disk = run.ground.image("disk", "160M", on=outer)
    _prepare_writer(run, disk, "append", run.variation.seconds(0.05, 0.2), 2)
    run.paths["outer"] = outer
    run.names["outer"] = find_device(outer)


def _act_blocked(run: ScenarioRun) -> Truth:
    warnings = read_text(_HUNG / "hung_task_warnings") or "10"
    # The kernel counts down what it reports, to silence: the end restores the number.
    run.ground.write(_HUNG / "hung_task_warnings", "10" if warnings == "0" else warnings)
    run.ground.write(_HUNG / "hung_task_timeout_secs", str(_HUNG_AFTER_S))
    act_unit(run, _WRITES_S)
    if run.healthy:
        sleep_beside(run.lasting, run.strength)
        return get_silent(run, "blocked-writers")
    run.ground.freeze(run.paths["outer"])
    sleep_beside(run.lasting, run.strength)
    run.ground.thaw(run.paths["outer"])
    roots = (
        run.names["unit"], run.names["device"], run.names["outer"], str(run.paths["disk"]),
        str(run.paths["outer"]),
    )  # fmt: skip
    return _of_disk(run, "blocked-writers", ("hung_task", "io_stalled"), roots)


def _prepare_writer(run: ScenarioRun, disk: Path, program: str, *arguments: object) -> None:
    """Start a systemd with a unit that writes to a file system."""
    prepare_unit(run, program, disk / "data", *arguments, shared=(disk,))
    run.paths["disk"] = disk
    run.names["device"] = find_device(disk)


def find_device(mount: Path) -> str:
    """Return the name of the device that is mounted there, such as `loop0`."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, place, *_ = line.split()
        if place == str(mount):
            return device.removeprefix("/dev/")
    raise UsageError(f"nothing is mounted at {mount}")


def _of_disk(
    run: ScenarioRun, scenario: str, symptoms: tuple[str, ...], roots: tuple[str, ...]
) -> Truth:
    """Return the truth about an incident of a file system or its device."""
    return Truth(
        scenario, healthy=False, finding=True, roots=roots, symptoms=symptoms,
        well=run.innocent, facts={"unit": run.names["unit"], "device": run.names["device"]},
    )  # fmt: skip


SCENARIOS = (
    Scenario("disk-full", "a unit fills its file system", 25, 120, "seconds",
             _prepare_full, _act_full, require=_require, least=15, slow=True),
    Scenario("io-error", "a unit's device reports errors: its own file has no room", 12, 60,
             "seconds", _prepare_errors, _act_errors, require=_require, least=8, slow=True),
    Scenario("blocked-writers", "a unit writes to a file system that does not answer", 22, 60,
             "seconds", _prepare_blocked, _act_blocked, require=_require_watch, least=18,
             slow=True),
)  # fmt: skip
