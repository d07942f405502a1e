"""What a message's property expiration says."""

from __future__ import annotations

import re
from typing import Final

from services.common.errors import PreconditionFailed

_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,19}")
_AT_MOST: Final = 10 * 365 * 24 * 60 * 60 * 1000  # ten years


def milliseconds(raw: bytes) -> int:
    """RabbitMQ's rule: an integer up to ten years, nothing around it. Raises PreconditionFailed for anything else."""
    found = int(raw) if _NUMBER.fullmatch(raw) else -1
    if not 0 <= found <= _AT_MOST:
        raise PreconditionFailed(f"invalid expiration '{raw.decode(errors='replace')}'")
    return found
