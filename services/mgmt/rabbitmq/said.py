"""JSON that somebody said: nothing that Python alone would read."""

from __future__ import annotations

from typing import Any

from services.common.errors import SyntaxFault
from services.mgmt.model.strict_json import strict


def read_json(data: bytes, what: str) -> dict[str, Any]:
    """Raises SyntaxFault for what is no JSON, no object, or has text that nobody can write."""
    try:
        said = strict(data)
    except (ValueError, RecursionError) as error:
        raise SyntaxFault(f"{what} no JSON: {error}") from None
    if not isinstance(said, dict):
        raise SyntaxFault(f"{what} no JSON object")
    return said
