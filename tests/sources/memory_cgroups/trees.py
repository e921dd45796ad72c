"""Trees of cgroups as folders: what the kernel would show, from the formats it uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nodescope.sources.places import Places

# This machine: /proc/self/mounts, shortened to what matters.
HYBRID_MOUNTS = """\
/dev/vda / ext4 rw,relatime 0 0
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""
V1_MOUNTS = """\
cgroup /sys/fs/cgroup/memory cgroup rw,nosuid,nodev,noexec,relatime,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,nosuid,nodev,noexec,relatime,xattr,name=systemd 0 0
"""
V2_MOUNTS = """\
cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate,memory_recursiveprot 0 0
"""
PAGE = 4096


@dataclass
class V1Tree:
    """A v1 hierarchy of memory, beside an empty v2 one unless it is left out."""

    root: Path
    hybrid: bool = True
    point: str = "sys/fs/cgroup/memory"
    tracked_extra: int = 0  # dying ones
    paths: list[str] = field(default_factory=lambda: ["/"])

    def __post_init__(self) -> None:
        mounts = HYBRID_MOUNTS if self.hybrid else V1_MOUNTS
        put(self.root / "proc/self/mounts", mounts)
        put(self.root / "proc/meminfo", "MemTotal:       24681788 kB\nMemFree: 1 kB\n")
        put(self.root / "proc/uptime", "3600.00 7000.00\n")
        put(self.root / "sys/devices/system/cpu/possible", "0-1\n")
        put(self.mount / "cgroup.sane_behavior", "0\n")
        put(self.mount / "memory.numa_stat", "total=6950 N0=6950\nhierarchical_total=513032\n")
        self.group("/")
        if self.hybrid:  # as here: it knows nothing of memory
            unified = self.root / "sys/fs/cgroup/unified"
            put(unified / "cgroup.controllers", "perf_event hugetlb\n")
            put(unified / "cgroup.stat", "nr_descendants 11\nnr_dying_descendants 0\n")

    @property
    def mount(self) -> Path:
        return self.root / self.point

    @property
    def places(self) -> Places:
        return Places(self.root)

    def group(
        self,
        path: str,
        own: dict[str, int] | None = None,
        total: dict[str, int] | None = None,
        kernel: int = 0,
        processes: str = "",
    ) -> None:
        """A cgroup; amounts by the names of memory.stat, 0 where left out."""
        names = ("cache", "rss", "shmem", "mapped_file", "swap")
        lines = [f"{name} {(own or {}).get(name, 0)}" for name in names]
        lines.append("hierarchical_memory_limit 9223372036854771712")
        lines += [f"total_{name} {(total or own or {}).get(name, 0)}" for name in names]
        folder = self.mount / path.lstrip("/")
        put(folder / "memory.stat", "\n".join(lines) + "\n")
        put(folder / "memory.kmem.usage_in_bytes", f"{kernel}\n")
        put(folder / "memory.force_empty", "")
        put(folder / "cgroup.procs", processes)
        if path not in self.paths:
            self.paths.append(path)
        self.track(self.tracked_extra)

    def track(self, dying: int, *, enabled: bool = True) -> None:
        """So many dying ones beside those that have a folder."""
        self.tracked_extra = dying
        put(
            self.root / "proc/cgroups",
            "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
            "cpuset\t3\t1\t1\n"
            f"memory\t4\t{len(self.paths) + dying}\t{int(enabled)}\n",
        )


@dataclass
class V2Tree:
    """A v2 hierarchy; `counts` says whether the kernel counts by controller (6.12)."""

    root: Path
    counts: bool = True

    def __post_init__(self) -> None:
        put(self.root / "proc/self/mounts", V2_MOUNTS)
        put(self.root / "proc/meminfo", "MemTotal:        4015956 kB\n")
        put(self.root / "proc/uptime", "7200.00 7000.00\n")
        put(self.root / "sys/devices/system/cpu/possible", "0-3\n")
        controllers = "cpuset cpu io memory hugetlb pids rdma\n"
        put(self.mount / "cgroup.controllers", controllers)

    @property
    def mount(self) -> Path:
        return self.root / "sys/fs/cgroup"

    @property
    def places(self) -> Places:
        return Places(self.root)

    def group(
        self,
        path: str,
        visible: int,
        dying: int,
        held: dict[str, int] | None = None,
        processes: str = "",
    ) -> None:
        """A cgroup with `visible` others below it and `dying` ones below it."""
        lines = [f"nr_descendants {visible}", f"nr_dying_descendants {dying + 1}"]
        if self.counts:
            # A removed cgroup may be held by something else than memory.
            lines += [f"nr_subsys_memory {visible + 1}", f"nr_dying_subsys_memory {dying}"]
        else:
            lines[1] = f"nr_dying_descendants {dying}"
        folder = self.mount / path.lstrip("/")
        put(folder / "cgroup.stat", "\n".join(lines) + "\n")
        amounts = {"anon": 0, "file": 0, "kernel": 0, "shmem": 0} | (held or {})
        swap = amounts.pop("swap", 0)
        put(folder / "memory.stat", "".join(f"{name} {n}\n" for name, n in amounts.items()))
        put(folder / "cgroup.procs", processes)
        if path != "/":
            put(folder / "cgroup.events", "populated 1\nfrozen 0\n")
            put(folder / "memory.swap.current", f"{swap}\n")
            put(folder / "memory.reclaim", "")


def put(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
