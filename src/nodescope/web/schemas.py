"""JSON schemas of the answers, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from nodescope.records.json import JsonObject

Schema: TypeAlias = JsonObject  # a JSON schema is JSON

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}
ANYTHING: Schema = {}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def listing(items: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": items}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these fields, and perhaps those."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def records(names: Sequence[str]) -> Schema:
    """Objects that have at least these fields, of any kind."""
    return listing(record(dict.fromkeys(names, ANYTHING)))


SPAN = record({"from_ms": NUMBER, "to_ms": NUMBER, "reason": STRING})
ERROR = record({"error": STRING, "hint": nullable(STRING)})
RECORDING = record({
    "node": record({"hostname": STRING}), "from_ms": NUMBER, "to_ms": NUMBER,
    "cpus": listing(INTEGER), "tables": listing(STRING), "gaps": listing(SPAN),
    "frozen": listing(SPAN), "live": BOOLEAN, "samples": INTEGER, "segments": INTEGER,
    "damaged": listing(STRING), "version": STRING, "revision": STRING,
})  # fmt: skip
TRACKS = listing(record({"name": STRING, "title": STRING, "unit": STRING, "group": STRING}))
TRACK = record({
    "name": STRING, "title": STRING, "unit": STRING, "from_ms": NUMBER, "column_ms": NUMBER,
    "most": listing(nullable(NUMBER)), "mean": listing(nullable(NUMBER)),
})  # fmt: skip
PROCESSES = record({
    "from_ms": NUMBER, "column_ms": NUMBER, "unit": STRING, "complete": BOOLEAN,
    "processes": listing(record({
        "comm": STRING, "samples": INTEGER, "values": listing(nullable(NUMBER)),
    })),
})  # fmt: skip
EVENTS = record({
    "events": listing(record({
        "time_ms": NUMBER, "kind": STRING, "title": STRING, "serious": BOOLEAN,
        "subject": STRING, "message": STRING, "cpu": nullable(INTEGER),
        "details": nullable({"type": "object"}),
    })),
    "left_off": INTEGER,
})  # fmt: skip
NODE: Schema = record(
    {"name": STRING, "value": INTEGER, "self": INTEGER,
     "children": listing({"$ref": "#/components/schemas/Node"})},
    {"module": STRING, "kernel": BOOLEAN, "more": BOOLEAN, "id": STRING, "base": NUMBER,
     "status": STRING, "p": nullable(NUMBER)},
)  # fmt: skip
_FLAME: dict[str, Schema] = {
    "total": INTEGER, "unit": STRING, "root": {"$ref": "#/components/schemas/Node"},
    "pruned_below": INTEGER,
}  # fmt: skip
FLAME = record(_FLAME)
TOP = listing(record(
    {"name": STRING, "samples": INTEGER, "share": NUMBER},
    {"self": INTEGER, "total": INTEGER, "module": STRING},
))  # fmt: skip
DIAGNOSIS = record({
    "from_ms": NUMBER, "to_ms": NUMBER,
    "findings": listing(record({
        "symptom": record({"kind": STRING, "time_ms": NUMBER, "statement": STRING}),
        "chains": listing(record({
            "confidence": NUMBER, "root": record({"kind": STRING, "name": STRING}),
            "place": BOOLEAN,
            "links": listing(record({
                "kind": STRING, "statement": STRING, "strength": NUMBER, "show": STRING,
                "look": record(
                    {"view": STRING, "from_ms": NUMBER, "to_ms": NUMBER},
                    {"row": STRING, "marked_frame": STRING},
                ),
            })),
            "meaning": nullable(STRING), "check": listing(STRING),
        })),
        "ends": nullable(record({"what": STRING, "consequence": STRING, "hint": STRING})),
        "unfollowed": INTEGER,
        "ruled_out": records(["name", "statement", "show"]),
    })),
    "conditions": listing(record({
        "kind": STRING, "owner": record({"kind": STRING, "name": STRING}), "severity": STRING,
        "since": nullable(STRING), "statement": STRING, "trend": STRING,
        "steps": records(["statement", "command"]), "show": STRING,
        "look": record({"view": STRING, "from_ms": NUMBER, "to_ms": NUMBER}, {"row": STRING}),
    })),
    "missing": records(["what", "consequence", "hint"]),
})  # fmt: skip
FIX_PLAN = record(
    {"plan": nullable({"type": "object"}), "why": nullable(STRING), "command": STRING},
    {"shown": listing(record({"title": STRING, "expect": listing(STRING)}))},
)
FIXES = record({
    "fixes": listing(record({
        "plan": STRING, "verdict": nullable({"type": "object"}),
        "steps": listing(record({
            "number": INTEGER, "title": STRING, "state": STRING, "time_ms": NUMBER,
            "error": nullable(STRING),
        })),
    })),
    "why": nullable(STRING),
})  # fmt: skip
COMPARE = record({
    "rows": records(["kind", "name", "window", "baseline", "ratio", "p", "q", "status", "flagged"]),
    "baseline": record({"from_ms": NUMBER, "to_ms": NUMBER, "recorded_ms": NUMBER}),
    "notes": listing(STRING), "samples": INTEGER, "method": STRING, "left_off": INTEGER,
})  # fmt: skip
DIFFERENCE = record({
    **_FLAME, "base_total": INTEGER, "base_scale": NUMBER,
    "baseline": record({"from_ms": NUMBER, "to_ms": NUMBER, "recorded_ms": NUMBER}),
})  # fmt: skip
FACTS = record({
    "at_ms": NUMBER,
    "network": nullable(record({
        "nics": records(["name", "driver"]),
        "queues": records(["nic", "queue", "irq", "cpus", "starved"]),
    })),
    "units": records(["unit", "active", "sub"]),
    "containers": records(["runtime", "id", "name", "state"]),
    "zombies": nullable(record({
        "tracked": nullable(INTEGER), "visible": nullable(INTEGER), "dying": nullable(INTEGER),
        "parents": records(["path", "dying", "kind", "held_bytes"]),
    })),
})  # fmt: skip
QUALITY = record({
    "from_ms": NUMBER, "to_ms": NUMBER, "samples": INTEGER, "lost": INTEGER,
    "gaps": records(["from_ms", "to_ms", "source", "reason"]),
    "clock_steps": records(["time_ms", "by_ms"]), "late_ms": nullable(NUMBER), "unseen_ms": NUMBER,
    "lost_share": nullable(NUMBER), "idle_share": nullable(NUMBER),
    "folded_stacks": INTEGER, "folded_share": nullable(NUMBER),
})  # fmt: skip
