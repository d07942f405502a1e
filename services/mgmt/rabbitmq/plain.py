"""Arguments as RabbitMQ's JSON has them: without the marks of types that JSON does not have."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from services.common.message import arguments


def plain(kept: str | bytes) -> dict[str, Any]:
    """Of a record's arguments."""
    data = kept.encode() if isinstance(kept, str) else kept
    return {name: told(value) for name, value in arguments.load(data).items()}


def told(value: Any) -> Any:  # noqa: ANN401 - whatever a field table has
    """One value; bytes that are no text are base64, and so are names; what JSON has no number for is a text."""
    if isinstance(value, Mapping):
        return {told(name): told(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, Decimal | float):
        return float(value) if math.isfinite(float(value)) else str(value)
    return text(value) if isinstance(value, bytes) else value


def written(row: Mapping[str, Any]) -> bytes:
    """As JSON."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode()


def text(data: bytes) -> str:
    """UTF-8, else base64."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()
