"""Documents as the bytes of a reply."""

from __future__ import annotations

import json

from nodescope.web.question import Reply


def json_reply(document: object, *, whole: bool = True) -> Reply:
    """Return a JSON document; names are anybody's text, so everything beyond ASCII is escaped."""
    body = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    return Reply(body, whole=whole)
