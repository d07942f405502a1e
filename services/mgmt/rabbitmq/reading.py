"""What is told of a thing, as JSON in a request."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from services.common.errors import SyntaxFault
from services.common.invalid import told

_M = TypeVar("_M", bound=BaseModel)


def read(kind: type[_M], data: bytes) -> _M:
    """Raises SyntaxFault that names what is wrong with it."""
    try:
        return kind.model_validate_json(data or b"{}")
    except ValidationError as error:
        raise SyntaxFault(told(error.errors())) from None
