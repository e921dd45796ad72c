"""The plan of a fix, and the steps of those that were applied. Nothing here changes the node."""

from __future__ import annotations

from nodescope.errors import NodescopeError
from nodescope.records.json import Json
from nodescope.records.view import View
from nodescope.records.view_forms import render_command
from nodescope.remedy.fix_status import read_fixes
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan_documents import plan_document
from nodescope.remedy.plan_words import describe_predicted, describe_step_kind
from nodescope.remedy.recorded_plan import plan_recording, why_not_here
from nodescope.web.answers.replies import json_reply
from nodescope.web.question import Question, Reply, to_ms


def fix_plan(question: Question) -> Reply:
    """Answer with the plan, if this is the node that was recorded; else with how to make it."""
    archive = question.snapshot.archive.root.absolute()
    document: dict[str, Json] = {
        "plan": None,
        "why": None,
        "command": render_command(View("fix"), archive),
    }
    node = NodeAccess(question.places)
    try:
        if (why := _why_not_here(question, node)) is not None:
            return json_reply({**document, "why": why}, whole=False)
        plan = plan_recording(question.recording, archive, node)
        steps: list[Json] = [
            {"title": describe_step_kind(step),
             "expect": [describe_predicted(each) for each in step.predicts]}
            for step in plan.steps
        ]  # fmt: skip
        shown = {**document, "plan": plan_document(plan), "shown": steps}
        return json_reply(shown, whole=False)
    except NodescopeError as error:
        return json_reply({**document, "why": str(error)}, whole=False)
    finally:
        node.close()


def _why_not_here(question: Question, node: NodeAccess) -> str | None:
    """Return why no plan can be made here: it rests on the node as it is now."""
    if question.snapshot.archive.bundle is not None:
        return "this is a bundle: a plan is made on the node itself"
    return why_not_here(question.recording, node)


def fixes(question: Question) -> Reply:
    """Answer with the fixes applied on this node, and how far each is."""
    node = NodeAccess(question.places)
    try:
        found = read_fixes(node)
    except NodescopeError as error:
        return json_reply({"fixes": [], "why": str(error)}, whole=False)
    finally:
        node.close()
    listed = [
        {"plan": each.plan, "verdict": each.verdict, "steps": [
            {"number": step.number, "title": step.title, "state": step.state,
             "time_ms": to_ms(step.time_ns), "error": step.error}
            for step in each.steps]}
        for each in found
    ]  # fmt: skip
    return json_reply({"fixes": listed, "why": None}, whole=False)
