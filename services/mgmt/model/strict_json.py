"""JSON of a request: strict, without what only Python's reader takes, or what an answer could not repeat."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any


def strict(data: str | bytes) -> Any:  # noqa: ANN401 - whatever JSON has
    """Raises ValueError, which says what is wrong, and RecursionError."""
    # Python's own would take UTF-16 as well, and half a surrogate pair that is written as UTF-8.
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    said = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    if "\\u" in text:
        json.dumps(said, ensure_ascii=False).encode()  # half a surrogate pair is no text
    return said


def depth_of(said: Any) -> int:  # noqa: ANN401 - whatever JSON has
    """How many maps and lists are within each other."""
    depth, parts = 0, _within([said])
    while parts:
        depth += 1
        parts = [each for part in parts for each in _within(part.values() if isinstance(part, dict) else part)]
    return depth


def _within(parts: Iterable[Any]) -> list[Any]:
    return [each for each in parts if isinstance(each, dict | list)]


def _finite(text: str) -> float:
    """What is too large is not infinite."""
    value = float(text)
    if not math.isfinite(value):
        _no_number(text)
    return value


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")
