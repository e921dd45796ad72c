"""Real binaries, built once per run: no build product is committed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static int local_one(int a) { return a * 3 + (int)strlen("abc"); }
__attribute__((noinline)) int global_two(int a) { return local_one(a) - 7; }
__attribute__((noinline, weak)) int weak_three(int a) { return global_two(a) ^ a; }
int __aliased(int a) __attribute__((alias("global_two")));
__asm__(".text\\n.globl raw_assembly\\nraw_assembly:\\n nop\\n nop\\n ret\\n");
int main(int argc, char **argv) {
  if (argc > 1) { puts("ready"); fflush(stdout); pause(); }
  return weak_three(argc) + (argv[0] == 0 ? __aliased(1) : 0);
}
"""


class Built:
    """One program in several shapes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "program.c").write_text(PROGRAM)
        self.pie = self._compile("pie", "-fpie", "-pie")
        self.fixed = self._compile("fixed", "-fno-pie", "-no-pie")
        self.static = self._compile("static", "-static")
        self.stripped = folder / "stripped"
        shutil.copy(self.pie, self.stripped)
        subprocess.run(["strip", self.stripped], check=True)

    def _compile(self, name: str, *options: str) -> Path:
        target = self.folder / name
        command = ["gcc", "-O1", "-Wl,--build-id=sha1", *options, "-o", str(target), "program.c"]
        subprocess.run(command, cwd=self.folder, check=True)
        return target


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    for tool in ("gcc", "strip", "nm", "objcopy"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return Built(tmp_path_factory.mktemp("built"))
