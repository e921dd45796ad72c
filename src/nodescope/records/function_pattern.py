"""Regular expressions over names of functions, matched in time linear in the names' length.

Whoever may open the page may send an expression, and Python's `re` can be made to match for
ever (`(..?)*x`) while no other thread runs. RE2, which Arrow brings along, cannot: it knows no
references to groups and no look-around. The command line uses it too, so that an expression
means the same in both places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodescope.errors import UsageError

if TYPE_CHECKING:
    from nodescope.arrays import Bool

_WORD = re.compile("[A-Za-z0-9_]+")  # an expression that only matches itself
_HINT = (
    "escape characters that mean themselves, as in `operator\\(\\)`; there are no references "
    "to groups and no look-around"
)


@dataclass(frozen=True, slots=True)
class FunctionPattern:
    """An expression that some part of a function's name matches."""

    text: str

    def match(self, names: Sequence[str]) -> Bool:
        """Return for each name whether it matches."""
        import numpy as np

        if _WORD.fullmatch(self.text):
            return np.array([self.text in name for name in names], np.bool_)
        import pyarrow.compute  # 40 ms and 9 MB, for those alone who give more than a word

        array = pyarrow.array(names, pyarrow.string())
        matched = pyarrow.compute.match_substring_regex(array, self.text)
        found: Bool = matched.to_numpy(zero_copy_only=False)
        return found


def check_function_pattern(text: str) -> str:
    """Return the expression unchanged; refuse what RE2 does not understand."""
    if _WORD.fullmatch(text):
        return text
    try:
        FunctionPattern(text).match([""])
    except ValueError as error:  # of Arrow, or a character that UTF-8 cannot have
        reason = str(error).removeprefix("Invalid regular expression: ")
        raise UsageError(
            f"not a regular expression: {text!r:.80}: {reason:.120}", hint=_HINT
        ) from error
    return text
