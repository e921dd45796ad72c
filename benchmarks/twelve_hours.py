"""Archives of twelve hours: the segments of captures of two minutes, over and over."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import nodescope
from benchmarks.captures import CPUS, SECONDS, prepare, prepare_diverse, repeat_archive
from benchmarks.diversity import DIVERSE
from benchmarks.view_times import NODESCOPE

COPIES = 360  # of two minutes: twelve hours
QUICK_COPIES = 40
VARIANTS = 3  # captures that differ, where stacks are tame


def twelve_hours(cache: Path, captures: list[Path], seconds: int, copies: int = COPIES) -> Path:
    """The archive of twelve hours; one that the same code made of the same captures serves."""
    folder = cache / f"archives-{copies}-{_fingerprint(captures)}"
    done = folder / "twelve"
    if not done.exists():
        print("   making twelve hours", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        archives = [folder / path.stem for path in captures]
        for path, archive in zip(captures, archives, strict=True):
            command = [*NODESCOPE, "import", str(path), "--archive", str(archive)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        repeat_archive(archives, folder / "part", copies, seconds)
        (folder / "part").rename(done)
    return done


def tame_and_diverse_hours(cache: Path, *, quick: bool) -> tuple[Path, Path]:
    """The archives of twelve hours at both ends of diversity; quick: forty minutes of 16 cores."""
    cpus, seconds = (16, 60) if quick else (CPUS, SECONDS)
    copies, stacks = (QUICK_COPIES, DIVERSE // 10) if quick else (COPIES, DIVERSE)
    data = prepare(cache, VARIANTS, cpus=cpus, seconds=seconds, capture_s=6 if quick else 30)
    capture, _ = prepare_diverse(
        cache, stacks, cpus=cpus, seconds=seconds, capture_s=5 if quick else 15
    )
    tame = twelve_hours(cache, data.large, seconds, copies)
    return tame, twelve_hours(cache, [capture], seconds, copies)


def _fingerprint(captures: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in captures:
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    for package in ("records", "archive", "ingest", "exchange"):
        for path in sorted((Path(nodescope.__file__).parent / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
