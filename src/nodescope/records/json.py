"""JSON as Python has it: documents that are written, and what others wrote before it is checked.

`JsonObject` is for content whose shape is not ours to know: the answers of a daemon, a file
that may be hostile or of another version. Its values have to be narrowed before they are
used. A document that we make has a `TypedDict` where somebody takes it apart again, and is
a `dict[str, Json]` where it only goes out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]
