"""Documents as the bytes of a reply."""

from __future__ import annotations

import json
from typing import Any

from nodescope.web.question import Reply


def json_reply(document: Any) -> Reply:
    """Return a JSON document; names are anybody's text, so everything beyond ASCII is escaped."""
    return Reply(json.dumps(document, separators=(",", ":"), allow_nan=False).encode())
