"""What is told of a thing, as JSON in a request."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from services.common.errors import SyntaxFault
from services.common.invalid import told
from services.mgmt.rabbitmq.said import read_json

_M = TypeVar("_M", bound=BaseModel)


def read(kind: type[_M], data: bytes) -> _M:
    """Raises SyntaxFault that names what is wrong with it."""
    try:
        return kind.model_validate(read_json(data or b"{}", "what is told is"))
    except ValidationError as error:
        raise SyntaxFault(told(error.errors())) from None
