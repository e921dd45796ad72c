"""The OpenAPI document, made from the routes."""

from __future__ import annotations

from collections.abc import Sequence

import nodescope
from nodescope.records.json import Json
from nodescope.web import schemas
from nodescope.web.declaration import AnswerKind, Route

_ERRORS = {
    "400": "a parameter makes no sense",
    "401": "a token is needed",
    "403": "asked by another site, or under another name",
    "503": "the recording is not there, or too many ask at once",
}


def describe(routes: Sequence[Route]) -> dict[str, Json]:
    """All of it."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Nodescope",
            "version": nodescope.__version__,
            "description": "One recording, read-only. Times are milliseconds since the epoch.",
        },
        "paths": {route.path: {"get": _operation(route)} for route in routes},
        "components": {"schemas": {"Error": schemas.ERROR, "Node": schemas.NODE}},
    }


def _operation(route: Route) -> dict[str, Json]:
    return {
        "summary": route.summary,
        "parameters": [
            {
                "name": each.name,
                "in": "query",
                "description": each.help,
                "required": each.required,
                "schema": dict(each.schema),
            }
            for each in route.parameters
        ],
        "responses": {
            "200": {
                "description": route.summary,
                "content": {kind.media_type: _content(kind) for kind in route.kinds},
            },
            **{
                status: {
                    "description": meaning,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
                for status, meaning in _ERRORS.items()
            },
        },
    }


def _content(kind: AnswerKind) -> dict[str, Json]:
    return {"schema": dict(kind.schema)}
