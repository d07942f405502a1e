"""JSON that somebody said: nothing that Python alone would read, and nothing that nobody could be told again."""

from __future__ import annotations

import json
import math
from typing import Any


def strict(data: str | bytes) -> Any:  # noqa: ANN401 - whatever JSON has
    """Raises ValueError, which says what is wrong, and RecursionError."""
    # Python's own would take UTF-16 as well, and half a surrogate pair that is written as UTF-8.
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    said = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    if "\\u" in text:
        json.dumps(said, ensure_ascii=False).encode()  # half a surrogate pair is no text
    return said


def _finite(text: str) -> float:
    """What is too large is not infinite."""
    value = float(text)
    if not math.isfinite(value):
        _no_number(text)
    return value


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")
