"""Make a plan from a recording: diagnose it, take what is proposed, remember how it was."""

from __future__ import annotations

import json
from pathlib import Path

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.errors import UsageError
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Plan
from nodescope.remedy.planner import Wishes, make_plan
from nodescope.remedy.proof.baselines import read_baselines
from nodescope.remedy.proposals import read_proposals
from nodescope.remedy.rests_on.facts import read_boot


def plan_recording(
    recording: Recording, archive: Path, node: NodeAccess, i_know: frozenset[str] = frozenset()
) -> Plan:
    """Return the plan against everything that a recording shows, on the node as it is now.

    `UsageError` if the recording is of another node or of an earlier boot.
    """
    if why := why_not_here(recording, node):
        raise UsageError(
            why,
            hint="make the plan where it was recorded, while that boot runs; "
            "`fix plan --unit NAME` stops a unit of this node",
        )
    window = Window(recording.extent.from_ns, recording.extent.to_ns)
    found = diagnose(recording, window)
    # As a file would have it: a plan made here and one made from a file are the same.
    proposals = read_proposals(json.loads(json.dumps(diagnosis_document(found))))
    baselines = read_baselines(recording, proposals, window.to_ns)
    return make_plan(proposals, node, Wishes(i_know, str(archive.absolute()), baselines))


def why_not_here(recording: Recording, node: NodeAccess) -> str | None:
    """Return why a plan cannot be made here: it rests on the node as it is now."""
    recorded = recording.parts[-1].description.start.boot_id if recording.parts else None
    return why_not_boot(recorded, node)


def why_not_boot(recorded: object, node: NodeAccess) -> str | None:
    """Return why a plan cannot rest on what was recorded in a boot; None if it is this one."""
    if recorded is None:
        return "it does not say which boot it is of"
    if recorded != read_boot(node):
        return "this recording is of another node, or of an earlier boot of this one"
    return None
