"""The front door: from a process's mapping to names of its code.

`Binaries.open` finds the file a process has mapped, even inside a container
or after it was unlinked, and makes sure it is that file and no other: a name
from a binary that has replaced the running one would be a lie. `Binary.resolve`
names file offsets. Neither ever raises for what a file does; reasons are
counted in `failures` (binaries) and `unresolved` (frames).

Costs are bounded: descriptors and bytes by `Limits`, oldest use first out;
a mapping seen in the last seconds costs one dictionary lookup; a failure is
remembered for half a minute. A held descriptor pins its inode, so revalidating
a known file is a single fstat.

Files are looked for in `/proc/PID/root`, then as `/proc/PID/exe`, then in our
own mount namespace, then, if unlinked or replaced, among `/proc/PID/map_files`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from nodescope.symbols.elf import Elf, parse_elf
from nodescope.symbols.file_bytes import FileBytes
from nodescope.symbols.image import Image, offset_name
from nodescope.symbols.mounts import is_remote
from nodescope.symbols.unresolved import Reason, Unresolvable
from nodescope.symbols.vdso import VDSO, read_vdso

ANONYMOUS = "[anon]"
_DELETED = " (deleted)"
_NOT_FILES = ("[", "//", "anon_inode:", "/anon_hugepage", "/SYSV", "/dev/", "socket:", "pipe:")
_MAX_MAP_FILES = 4096

_Key = tuple[str, object, object, object]
_FileKey = tuple[int, int, int, int]  # device, inode, mtime, size


@dataclass(frozen=True)
class Limits:
    """Limits of the cache's memory, and of how long its entries are believed."""

    table_bytes: int = 24 << 20
    descriptors: int = 256
    mappings: int = 8192
    believe_s: float = 5.0
    believe_failure_s: float = 30.0
    idle_s: float = 60.0  # an open file keeps a container's mount and memory cgroup alive
    remote_files: bool = False  # a read from FUSE or NFS may never return


class Binary:
    """A mapped binary under the name its process knows; `resolve` names its code.

    Not for keeping: its file may be closed to stay within the limits, and then
    only offsets come back. `Binaries.open` is cheap; ask it each time.
    """

    __slots__ = ("_owner", "believed_until", "build_id", "image", "module", "reason")

    def __init__(
        self, owner: Binaries, module: str, image: Image | None, reason: Reason | None
    ) -> None:
        self.module = module
        self.reason = reason
        self.build_id = image.build_id if image else None
        self._owner = owner
        self.image = image
        self.believed_until = 0.0

    def resolve(self, file_offsets: NDArray[np.uint64]) -> list[str]:
        """One name per offset: demangled, or "+0x…" when there is none.

        Code without a file has no offsets worth telling apart; all of it bears
        the module's name, so that a JIT does not make every stack unique.
        """
        if self.image is not None:
            self.image.used_at = self._owner.now()
            names = self.image.resolve(file_offsets, self._owner.unresolved)
            if self.image.grew:
                self._owner.shrink(keep=self.image)
            return names
        if self.reason is None:
            return [self.module] * len(file_offsets)
        self._owner.unresolved[self.reason] += len(file_offsets)
        return [offset_name(offset) for offset in file_offsets.tolist()]


class Binaries:
    """All binaries seen lately, within `Limits`."""

    def __init__(
        self,
        proc_root: Path = Path("/proc"),
        own_root: Path = Path("/"),
        limits: Limits | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.limits = limits or Limits()
        self.failures: Counter[Reason] = Counter()
        self.unresolved: Counter[Reason] = Counter()
        self._proc_root = str(proc_root)
        self._own_root = "" if str(own_root) == "/" else str(own_root)
        self._clock = clock
        self._mappings: dict[_Key, Binary] = {}
        self._by_file: dict[_FileKey, Image] = {}
        self._by_build_id: dict[bytes, Image] = {}
        self._counted = (0, 0)  # bytes and descriptors of all of `_by_file`
        self._vdso: Image | None = None

    def open(
        self,
        pid: int,
        path: str,
        device: tuple[int, int] | None = None,
        inode: int | None = None,
        build_id: bytes | None = None,
    ) -> Binary:
        """The binary a process has mapped, by what the kernel said about it.

        Zero inodes and empty build-ids count as unknown. Never raises.
        """
        # Without identity, the path means something only inside that process.
        key = (path, device, inode, build_id) if inode or build_id else (path, pid, None, None)
        binary = self._mappings.get(key)
        now = self._clock()
        if binary is not None and now < binary.believed_until:
            image = binary.image
            if image is None:
                return binary
            if not image.closed:
                image.used_at = now
                return binary
        return self._open_again(key, binary, now, pid, path, device, inode, build_id)

    def now(self) -> float:
        """The time by the clock that idleness is measured with."""
        return self._clock()

    @property
    def nbytes(self) -> int:
        """Return the memory of all open images."""
        return sum(image.nbytes for image in self._by_file.values())

    @property
    def descriptors(self) -> int:
        """How many files are held open."""
        return sum(image.descriptors for image in self._by_file.values())

    def close(self) -> None:
        """Let go of every file and table."""
        for image in list(self._by_file.values()):
            image.close()
        self._by_file.clear()
        self._by_build_id.clear()
        self._mappings.clear()
        self._counted = (0, 0)

    def shrink(self, keep: Image) -> None:
        """Drop the images used longest ago until the limits hold again."""
        keep.grew = False
        if keep is self._vdso:
            return
        self._count(keep, (keep.nbytes, keep.descriptors))
        images = self._by_file
        while len(images) > 1 and (
            self._counted[0] > self.limits.table_bytes or self._counted[1] > self.limits.descriptors
        ):
            key = min((k for k, i in images.items() if i is not keep),
                      key=lambda k: images[k].used_at)  # fmt: skip
            self._drop(key)

    def _count(self, image: Image, now: tuple[int, int]) -> None:
        """Keep the sums: to make them anew for each image took a third of the recorder's time."""
        nbytes, descriptors = self._counted
        self._counted = (
            nbytes + now[0] - image.counted[0], descriptors + now[1] - image.counted[1],
        )  # fmt: skip
        image.counted = now

    def close_idle(self) -> int:
        """Let go of files nobody asked about for `idle_s`; returns how many.

        Call every few seconds. A descriptor of ours must not be what keeps a
        removed container's file system mounted or its memory cgroup dying.
        """
        oldest = self._clock() - self.limits.idle_s
        idle = [key for key, image in self._by_file.items() if image.used_at < oldest]
        for key in idle:
            self._drop(key)
        return len(idle)

    def _drop(self, key: _FileKey) -> None:
        image = self._by_file.pop(key)
        self._count(image, (0, 0))
        if image.build_id and self._by_build_id.get(image.build_id) is image:
            del self._by_build_id[image.build_id]
        image.close()

    def _open_again(
        self,
        key: _Key,
        known: Binary | None,
        now: float,
        pid: int,
        path: str,
        device: tuple[int, int] | None,
        inode: int | None,
        build_id: bytes | None,
    ) -> Binary:
        if known is not None and known.image is not None and known.image.unchanged():
            binary = known
        elif key[2] is not None or key[3] is not None:
            dead = (path, pid, inode, build_id)  # remembered for this process only
            failed = self._mappings.get(dead)
            if failed is not None and now < failed.believed_until:
                return failed
            binary = self._find(pid, path, device, inode or None, build_id or None)
            if binary.reason is Reason.PROCESS_GONE:
                key = dead
        else:
            binary = self._find(pid, path, None, None, None)
        lasting = binary.image is not None
        binary.believed_until = now + (
            self.limits.believe_s if lasting else self.limits.believe_failure_s
        )
        if binary.image is not None:
            binary.image.used_at = now
            if binary.image.grew:
                self.shrink(keep=binary.image)
        if len(self._mappings) >= self.limits.mappings:
            self._forget_old_mappings(now)
        self._mappings[key] = binary
        return binary

    def _forget_old_mappings(self, now: float) -> None:
        current = {k: b for k, b in self._mappings.items() if now < b.believed_until}
        self._mappings = current if len(current) < self.limits.mappings // 2 else {}

    def _find(
        self,
        pid: int,
        path: str,
        device: tuple[int, int] | None,
        inode: int | None,
        build_id: bytes | None,
    ) -> Binary:
        if path == VDSO:
            return self._find_vdso()
        if not path or path.startswith(_NOT_FILES):
            return Binary(self, path or ANONYMOUS, None, None)
        if build_id is not None:
            image = self._by_build_id.get(build_id)
            if image is not None and image.unchanged():
                return Binary(self, path, image, None)
        wanted = _Identity(device, inode, build_id)
        try:
            return Binary(self, path, self._find_image(pid, path, wanted), None)
        except Unresolvable as error:
            self.failures[error.why] += 1
            if path.startswith("/memfd:") and error.why is not Reason.PROCESS_GONE:
                return Binary(self, path, None, None)  # a JIT's double mapping, most often
            return Binary(self, path, None, error.why)

    def _find_vdso(self) -> Binary:
        try:
            if self._vdso is None:
                self._vdso = Image(parse_elf(read_vdso(Path(self._proc_root))), VDSO, ())
        except Unresolvable as error:
            self.failures[error.why] += 1
            return Binary(self, VDSO, None, error.why)
        return Binary(self, VDSO, self._vdso, None)

    def _find_image(self, pid: int, path: str, wanted: _Identity) -> Image:
        """The first candidate that is the wanted file; raises `Unresolvable`."""
        process = f"{self._proc_root}/{pid}"
        deleted = path.endswith(_DELETED)
        plain = path.removesuffix(_DELETED)
        if not self.limits.remote_files and (
            is_remote(f"{process}/mountinfo", plain)
            or is_remote(f"{self._proc_root}/self/mountinfo", plain)
        ):
            raise Unresolvable(path, Reason.REMOTE)
        why = Reason.ABSENT
        for candidate, trusted in self._candidates(process, plain):
            try:
                return self._open_image(candidate, trusted and not deleted, plain, process, wanted)
            except Unresolvable as error:
                # Other places may well hold other files; only the process's own
                # path tells what became of this one.
                why = error.why if trusted else why
        if deleted and why in (Reason.ABSENT, Reason.REPLACED):
            why = Reason.DELETED
        if why is Reason.ABSENT and not Path(process).is_dir():
            why = Reason.PROCESS_GONE
        raise Unresolvable(path, why)

    def _candidates(self, process: str, plain: str) -> Iterator[tuple[str, bool]]:
        """Paths to try, and whether the path alone may be believed."""
        if plain.startswith("/") and not plain.startswith("/memfd:"):
            yield f"{process}/root{plain}", True
            yield f"{process}/exe", False
            yield f"{self._own_root}{plain}", False
        else:
            yield f"{process}/exe", False
        folder = f"{process}/map_files"
        try:
            with os.scandir(folder) as entries:
                seen = set()
                for number, entry in enumerate(entries):
                    if number >= _MAX_MAP_FILES:
                        return
                    target = os.readlink(entry.path)
                    if target.removesuffix(_DELETED) == plain and target not in seen:
                        seen.add(target)
                        yield entry.path, False
        except OSError:
            return

    def _open_image(
        self, candidate: str, trusted: bool, plain: str, process: str, wanted: _Identity
    ) -> Image:
        source = FileBytes(candidate)
        status = source.status
        key = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
        image = self._by_file.get(key)
        try:
            if image is not None and image.unchanged():
                _check(wanted, source, image.elf, trusted)
                source.close()
                return image
            elf = parse_elf(source)
            _check(wanted, source, elf, trusted)
        except Unresolvable:
            source.close()
            raise
        if image is not None:  # its file was replaced by another of the same identity
            self._drop(key)
        image = Image(elf, plain, (f"{process}/root", self._own_root))
        self._by_file[key] = image
        if elf.build_id:
            self._by_build_id.setdefault(elf.build_id, image)
        return image


@dataclass(frozen=True, slots=True)
class _Identity:
    """The kernel's description of a mapped file; None is unknown."""

    device: tuple[int, int] | None
    inode: int | None
    build_id: bytes | None


def _check(wanted: _Identity, source: FileBytes, elf: Elf, trusted: bool) -> None:
    """Raise unless the file at hand is the one that is mapped."""
    if not _agrees(wanted, source.status, elf.build_id, trusted):
        raise Unresolvable(source.label, Reason.REPLACED)


def _agrees(
    wanted: _Identity, status: os.stat_result, build_id: bytes | None, trusted: bool
) -> bool:
    if wanted.build_id is not None and build_id is not None:
        return wanted.build_id == build_id
    if wanted.inode is None:
        return trusted and wanted.build_id is None
    if wanted.inode != status.st_ino:
        return False
    if wanted.device is None:
        return True
    found = (os.major(status.st_dev), os.minor(status.st_dev))
    # btrfs and overlayfs report one anonymous device to stat and another to
    # mmap (btrfs subvolumes, overlay's real inode); major 0 marks them.
    return wanted.device == found or 0 in (wanted.device[0], found[0])
