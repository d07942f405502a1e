"""What an operation answers that is more than its JSON. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """`value` is JSON. Over HTTP it has `headers`, and is `data` itself where there is some."""

    value: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes | None = None
