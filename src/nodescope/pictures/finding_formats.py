"""Findings in the formats that pipelines read: SARIF 2.1.0 and JUnit XML.

SARIF (OASIS, sarif-v2.1.0): one rule per verdict, one result per finding, suppressed results for
what the allow-list allows. JUnit: one test case per finding or allowed start, so that a report
without findings still shows what was looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from xml.etree import ElementTree

from nodescope import __version__
from nodescope.judgement.allow_list import Allowance
from nodescope.judgement.image_gate import ImageGate
from nodescope.judgement.verdict import VERDICTS, AuditVerdict
from nodescope.pictures.text import visible
from nodescope.records.json import Json

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_WIDE = 4096


def sarif_document(gate: ImageGate, unjudged: Sequence[str]) -> dict[str, Json]:
    """Return the findings as a SARIF log of one run."""
    rules: list[Json] = [
        {"id": verdict, "shortDescription": {"text": meaning}}
        for verdict, meaning in VERDICTS.items()
    ]
    results: list[Json] = [_result(each, None) for each in gate.findings]
    results += [_result(finding, allowance) for finding, allowance in gate.allowed]
    notes: list[Json] = [
        {"level": "error", "message": {"text": f"not judged: {each}"}} for each in unjudged
    ]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "nodescope", "version": __version__, "rules": rules}},
                "invocations": [
                    {"executionSuccessful": not unjudged, "toolExecutionNotifications": notes}
                ],
                "originalUriBaseIds": {
                    "IMAGE": {"description": {"text": "the root folder of the image"}}
                },
                "results": results,
            }
        ],
    }


def _result(finding: AuditVerdict, allowance: Allowance | None) -> dict[str, Json]:
    path = finding.evidence.get("fragment")
    result: dict[str, Json] = {
        "ruleId": finding.verdict,
        "ruleIndex": list(VERDICTS).index(finding.verdict),
        "level": "error",
        "message": {"text": f"{finding.kind} {finding.name}: {finding.reason}"},
        "partialFingerprints": {"nodescope/v1": _fingerprint(finding)},
    }
    if isinstance(path, str):
        place: dict[str, Json] = {
            "artifactLocation": {"uri": _uri(path), "uriBaseId": "IMAGE"},
        }
        line = finding.evidence.get("line")
        if isinstance(line, int):
            place["region"] = {"startLine": line}
        result["locations"] = [{"physicalLocation": place}]
    if allowance is not None:
        result["suppressions"] = [{"kind": "external", "justification": allowance.reason}]
    return result


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(path.lstrip("/"))


def _fingerprint(finding: AuditVerdict) -> str:
    what = (finding.verdict, finding.kind, finding.name, str(finding.evidence.get("starts")))
    return hashlib.sha256("\0".join(what).encode("utf-8", "replace")).hexdigest()[:32]


def junit_document(gate: ImageGate, unjudged: Sequence[str]) -> str:
    """Return the findings as a JUnit test suite: a failure each, an error if unjudged."""
    suite = ElementTree.Element(
        "testsuite",
        name="first boot of the image",
        tests=str(max(len(gate.findings) + len(gate.allowed) + len(unjudged), 1)),
        failures=str(len(gate.findings)),
        errors=str(len(unjudged)),
        skipped=str(len(gate.allowed)),
    )
    for finding in gate.findings:
        case = _case(suite, finding)
        failure = ElementTree.SubElement(case, "failure", type=finding.verdict)
        failure.set("message", visible(VERDICTS[finding.verdict]))
        failure.text = visible(finding.reason, _WIDE)
    for finding, allowance in gate.allowed:
        skipped = ElementTree.SubElement(_case(suite, finding), "skipped")
        skipped.set("message", f"allowed: {visible(allowance.reason, _WIDE)}")
    for each in unjudged:
        case = ElementTree.SubElement(suite, "testcase", classname="nodescope", name=visible(each))
        ElementTree.SubElement(case, "error", message=f"could not be judged: {visible(each)}")
    if len(suite) == 0:
        ElementTree.SubElement(suite, "testcase", classname="nodescope", name="audit")
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, "unicode")


def _case(suite: ElementTree.Element, finding: AuditVerdict) -> ElementTree.Element:
    name = visible(finding.name)
    detail = finding.evidence.get("starts")
    if finding.kind == "cron" and detail:
        name = f"{name}: {visible(str(detail))}"
    group = f"nodescope.{finding.verdict}.{finding.kind.replace(' ', '-')}"
    return ElementTree.SubElement(suite, "testcase", classname=group, name=name)
