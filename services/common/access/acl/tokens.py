"""The tokens of an ACL file, line by line, as Broker-J's parser cuts it (java.io.StreamTokenizer, as it sets it up).

Words are of letters, digits and `_-.*@:+`; what is in quotes is one token; `#` begins a comment; a line that ends with
a backslash goes on in the next. Every other character is a token by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from services.common.errors import SyntaxFault

_TOKEN = re.compile(
    r"""
      (?P<end>\r\n|\r|\n)
    | (?P<blank>[\x00-\x20]|\#[^\r\n]*)
    | (?P<word>[A-Za-z0-9_.*@:+\u0100-\U0010ffff-]+)
    | "(?P<double>(?:\\.|[^"\\\r\n])*)"?
    | '(?P<single>(?:\\.|[^'\\\r\n])*)'?
    | (?P<continuation>\\)
    | (?P<other>.)
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Line(NamedTuple):
    """`number` is that of its last line in the file."""

    number: int
    tokens: list[str]


def lines(text: str) -> Iterator[Line]:
    """The lines that have tokens; raises SyntaxFault for a backslash that does not end its line."""
    number, goes_on = 1, False
    tokens: list[str] = []
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if goes_on and kind != "end":
            raise SyntaxFault(f"Premature continuation character at line {number}")
        if kind == "end":
            if not goes_on:
                yield from [Line(number, tokens)] if tokens else []
                tokens = []
            number += 1
        elif kind not in {"blank", "continuation"}:
            tokens.append(_READ[kind](found[kind]))
        goes_on = kind == "continuation"
    if tokens:
        yield Line(number, tokens)


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)


def _as_it_is(text: str) -> str:
    return text


_READ: dict[str, Callable[[str], str]] = {
    "word": _as_it_is,
    "other": _as_it_is,
    "double": _unquoted,
    "single": _unquoted,
}
