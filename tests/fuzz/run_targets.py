"""Fuzz one parser under atheris.

python -m tests.fuzz.run_targets perf_script -max_total_time=60 [corpus folder]
"""

from __future__ import annotations

import importlib
import sys


def main() -> None:
    atheris = importlib.import_module("atheris")
    # Before anything else imports them: only then are the parsers' branches seen.
    with atheris.instrument_imports(include=["nodescope.exchange"]):
        targets = importlib.import_module("tests.fuzz.targets").TARGETS
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, targets[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
