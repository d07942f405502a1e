"""JSON that somebody said: nothing that Python alone would read."""

from __future__ import annotations

import json
from typing import Any

from services.common.errors import SyntaxFault


def read_json(data: bytes, what: str) -> dict[str, Any]:
    """Raises SyntaxFault for what is no JSON, no object, or has text that nobody can write."""
    try:
        said = json.loads(data, parse_constant=_no_number)
        if b"\\u" in data:
            json.dumps(said, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise SyntaxFault(f"{what} no JSON: {error}") from None
    if not isinstance(said, dict):
        raise SyntaxFault(f"{what} no JSON object")
    return said


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")
