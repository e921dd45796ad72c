"""Absence is not evidence: random parts are removed from every committed bundle and from the
story in little, and each is diagnosed again. No statement may become stronger or change its sign,
and no incident, root or condition may appear.

A removal takes a table, some time of one, kinds of events, a core, or a part
(`nodescope.lab.degradation`, which also says what counts as stronger). Each is made by a seed:
a violation can be made again.

How it could be fooled: by removals that hit nothing the diagnosis rests on (a grid says how many
changed what was said), by a comparison that never complains (tests/diagnosis has some that must
fail), and by exceptions (docs/diagnosis.md lists the three, and they are checked).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.results import Bar, Grid, Options, Result
from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.lab.degradation import degrade, find_violations
from nodescope.lab.synthetic import Shape, write_story
from nodescope.recording.memory import hold_in_memory
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

BUNDLES = Path("tests/diagnosis/bundles")
REMOVALS = 2_000


def run(options: Options) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        story = Path(folder, "story")
        write_story(story, Shape().small())
        paths = [*sorted(BUNDLES.glob("*.bundle")), story]
        each = 2 if options.quick else -(-REMOVALS // len(paths))
        rows, violations = [], []
        with ProcessPoolExecutor() as pool:
            tried = list(pool.map(_try, paths, [each] * len(paths)))
        for path, (changed, found) in zip(paths, tried, strict=True):
            rows.append((path.stem, str(each), str(changed), str(len(found))))
            violations += found
    total = each * len(paths)
    bar = Bar("statements that got stronger", "0", f"{len(violations)} in {total:,} removals",
              not violations)  # fmt: skip
    head = ("recording", "removals", "that changed what was said", "violations")
    kinds = Counter(violations)
    return Result((bar,), (Grid("Removals", head, tuple(rows)),), tuple(kinds))


def _try(path: Path, removals: int) -> tuple[int, list[str]]:
    """Return how many removals changed the diagnosis of a recording, and what was violated."""
    recording = hold_in_memory(Recording.open(path))
    window = Window(recording.extent.from_ns, recording.extent.to_ns)
    whole = diagnose(recording, window)
    said = diagnosis_document(whole)
    changed, violations = 0, []
    for seed in range(removals):
        less = degrade(recording, seed)
        found = diagnose(less.recording, window)
        changed += diagnosis_document(found) != said
        violations += [
            f"{path.stem}, seed {seed} ({less.said}): {each}"
            for each in find_violations(whole, found, less)
        ]
    return changed, violations
