"""JSON of a request: strict, without what only Python's reader takes."""

from __future__ import annotations

from typing import Any

from services.common.errors import SyntaxFault
from services.mgmt.model.strict_json import strict


def read_json(data: bytes, what: str) -> dict[str, Any]:
    """Raises SyntaxFault for what is no JSON, no object, or has text that UTF-8 cannot write."""
    try:
        said = strict(data)
    except (ValueError, RecursionError) as error:
        raise SyntaxFault(f"{what} no JSON: {error}") from None
    if not isinstance(said, dict):
        raise SyntaxFault(f"{what} no JSON object")
    return said
