"""Rust symbol names: the legacy scheme and v0 (RFC 2603).

Both are read iteratively or with a depth limit, and stop writing at
`MAX_CHARS`, so a name made to explode costs no more than a long one. What a
profile needs is the path of the function: v0's types, lifetimes and constants
are shown briefly, instantiating crates and hashes not at all.
"""

from __future__ import annotations

import re

MAX_CHARS = 1024
MAX_DEPTH = 64
MAX_STEPS = 4096

_LEGACY = re.compile(r"_{1,2}ZN(?P<path>.+?)17h[0-9a-f]{16}E(?P<suffix>\..*)?")
_ESCAPE = re.compile(r"\$(SP|BP|RF|LT|GT|LP|RP|C|u[0-9a-f]{1,6})\$|\.\.")
_ESCAPES = {
    "SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}  # fmt: skip


def demangle_rust_legacy(name: str) -> str | None:
    """`_ZN4core3fmt5write17h…E` → `core::fmt::write`; None if it is not one."""
    match = _LEGACY.fullmatch(name)
    if match is None:
        return None
    path = match["path"]
    parts: list[str] = []
    position = 0
    while position < len(path):
        digits = re.compile(r"[0-9]{1,4}").match(path, position)
        if digits is None:
            return None
        position = digits.end()
        size = int(digits[0])
        part = path[position : position + size]
        if not size or len(part) != size:
            return None
        position += size
        if part.startswith("_$"):
            part = part[1:]
        parts.append(_ESCAPE.sub(_unescape, part))
    return "::".join(parts) if parts else None


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code is None:
        return "::"
    if code in _ESCAPES:
        return _ESCAPES[code]
    value = int(code[1:], 16)
    character = chr(value) if value <= 0x10FFFF else ""
    return character if character.isprintable() else match[0]


def demangle_rust_v0(name: str) -> str | None:
    """`_RNvCs…_4main3run` → `main::run`; None if it is not one."""
    if not name.startswith("_R"):
        return None
    body = name[2:].split(".", 1)[0]
    reader = _V0(body)
    try:
        reader.path(in_value=True)
    except _NotV0:
        return None
    return "".join(reader.out)[:MAX_CHARS] or None


class _NotV0(Exception):
    """The name breaks the grammar or our limits."""


_BASIC_TYPES = {
    "b": "bool", "c": "char", "e": "str", "u": "()", "a": "i8", "s": "i16", "l": "i32",
    "x": "i64", "n": "i128", "i": "isize", "h": "u8", "t": "u16", "m": "u32", "y": "u64",
    "o": "u128", "j": "usize", "f": "f32", "d": "f64", "z": "!", "p": "_", "v": "...",
}  # fmt: skip


class _V0:
    """A reader of one name; every production is a method, as in the RFC."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self._chars = 0
        self._depth = 0
        self._steps = 0

    def write(self, text: str) -> None:
        self._chars += len(text)
        if self._chars <= 2 * MAX_CHARS:
            self.out.append(text)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self) -> str:
        self._steps += 1
        character = self.peek()
        if not character or self._steps > MAX_STEPS:
            raise _NotV0
        self.at += 1
        return character

    def eat(self, character: str) -> bool:
        if self.peek() != character:
            return False
        self.take()
        return True

    def base62(self) -> int:
        """`_` is 0, `0_` is 1, and so on."""
        value = 0
        if self.eat("_"):
            return 0
        while not self.eat("_"):
            digit = self.take()
            if not digit.isascii() or not digit.isalnum():
                raise _NotV0
            value = value * 62 + _base62_digit(digit)
            if value > 1 << 64:
                raise _NotV0
        return value + 1

    def identifier(self) -> str:
        """A name, decoded from Punycode when marked `u`."""
        if self.eat("s"):
            self.base62()  # the disambiguator tells crates apart, not people
        encoded = self.eat("u")
        digits = ""
        while self.peek().isdigit() and self.peek().isascii():
            digits += self.take()
            if digits == "0" or len(digits) > 4:
                break
        if not digits:
            raise _NotV0
        self.eat("_")
        size = int(digits)
        text = self.text[self.at : self.at + size]
        if len(text) != size:
            raise _NotV0
        self.at += size
        if not encoded:
            return text
        ascii_part, _, rest = text.rpartition("_")
        try:
            return f"{ascii_part}-{rest}".encode().decode("punycode")
        except UnicodeError:
            return text

    def enter(self) -> None:
        self._depth += 1
        self._steps += 1
        if self._depth > MAX_DEPTH or self._steps > MAX_STEPS:
            raise _NotV0

    def leave(self) -> None:
        self._depth -= 1

    def backref(self) -> int:
        """Jump to an earlier position; returns where to come back to."""
        start = self.at - 1
        target = self.base62()
        if target >= start:
            raise _NotV0
        back, self.at = self.at, target
        return back

    def path(self, in_value: bool) -> None:
        self.enter()
        tag = self.take()
        if tag == "C":
            self.write(self.identifier())
        elif tag == "N":
            self._nested(in_value)
        elif tag in "MXY":
            if tag != "Y":
                self._impl_path()
            self.write("<")
            self.type()
            if tag != "M":
                self.write(" as ")
                self.path(in_value=False)
            self.write(">")
        elif tag == "I":
            self.path(in_value)
            self.write("::<" if in_value else "<")
            self._list(self._generic_argument)
            self.write(">")
        elif tag == "B":
            back = self.backref()
            self.path(in_value)
            self.at = back
        else:
            raise _NotV0
        self.leave()

    def _nested(self, in_value: bool) -> None:
        namespace = self.take()
        if not namespace.isalpha():
            raise _NotV0
        self.path(in_value)
        disambiguator = 0
        if self.peek() == "s":
            mark = self.at
            self.take()
            disambiguator = self.base62() + 1
            self.at = mark
        name = self.identifier()
        if namespace.isupper():
            label = {"C": "closure", "S": "shim"}.get(namespace, namespace)
            self.write(f"::{{{label}{':' + name if name else ''}#{disambiguator}}}")
        elif name:
            self.write(f"::{name}")

    def _impl_path(self) -> None:
        """Where the impl stands; read, not shown."""
        if self.eat("s"):
            self.base62()
        kept, chars = len(self.out), self._chars
        self.path(in_value=False)
        del self.out[kept:]
        self._chars = chars

    def _list(self, item: object, separator: str = ", ") -> int:
        count = 0
        while not self.eat("E"):
            if count:
                self.write(separator)
            item()  # type: ignore[operator]
            count += 1
        return count

    def _generic_argument(self) -> None:
        if self.eat("L"):
            self.base62()
            self.write("'_")
        elif self.eat("K"):
            self._constant()
        else:
            self.type()

    def type(self) -> None:
        self.enter()
        tag = self.take()
        if tag in _BASIC_TYPES:
            self.write(_BASIC_TYPES[tag])
        elif tag in "RQ":
            if self.eat("L"):
                self.base62()
            self.write("&" if tag == "R" else "&mut ")
            self.type()
        elif tag in "PO":
            self.write("*const " if tag == "P" else "*mut ")
            self.type()
        elif tag in "AS":
            self.write("[")
            self.type()
            if tag == "A":
                self.write("; ")
                self._constant()
            self.write("]")
        elif tag == "T":
            self.write("(")
            if self._list(self.type) == 1:
                self.write(",")
            self.write(")")
        elif tag == "F":
            self._function_type()
        elif tag == "D":
            self._dyn()
        elif tag == "B":
            back = self.backref()
            self.type()
            self.at = back
        else:
            self.at -= 1
            self.path(in_value=False)
        self.leave()

    def _function_type(self) -> None:
        if self.eat("G"):
            self.base62()
        if self.eat("U"):
            self.write("unsafe ")
        if self.eat("K"):
            abi = "C" if self.eat("C") else self.identifier().replace("_", "-")
            self.write(f'extern "{abi}" ')
        self.write("fn(")
        self._list(self.type)
        self.write(")")
        if not self.eat("u"):
            self.write(" -> ")
            self.type()

    def _dyn(self) -> None:
        if self.eat("G"):
            self.base62()
        self.write("dyn ")
        self._list(self._dyn_trait, " + ")
        if not self.eat("L"):
            raise _NotV0
        self.base62()

    def _dyn_trait(self) -> None:
        self.path(in_value=False)
        while self.eat("p"):
            self.write(f"<{self.identifier()} = ")
            self.type()
            self.write(">")

    def _constant(self) -> None:
        self.enter()
        if self.eat("p"):
            self.write("_")
        elif self.eat("B"):
            back = self.backref()
            self._constant()
            self.at = back
        else:
            tag = self.take()
            if tag not in _BASIC_TYPES:
                raise _NotV0  # structural constants are unstable Rust
            sign = "-" if self.eat("n") else ""
            digits = ""
            while not self.eat("_"):
                digits += self.take()
            if len(digits) > 32 or not re.fullmatch("[0-9a-f]*", digits):
                raise _NotV0
            value = int(digits or "0", 16)
            self.write(_constant_text(tag, sign, value))
        self.leave()


def _constant_text(tag: str, sign: str, value: int) -> str:
    if tag == "b":
        return "true" if value else "false"
    if tag == "c" and value <= 0x10FFFF and chr(value).isprintable():
        return repr(chr(value))
    return f"{sign}{value}"


def _base62_digit(digit: str) -> int:
    if digit.isdigit():
        return ord(digit) - 48
    return ord(digit) - 87 if digit.islower() else ord(digit) - 29
