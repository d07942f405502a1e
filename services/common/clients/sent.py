"""A batch that was sent to a queue process, until it is done."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.clients.outbound import Attempt
from services.common.clients.refusals import Refusals


@dataclass(slots=True)
class Sent:
    """`preceding`: how many attempts were published before them."""

    attempts: list[Attempt]
    size: int
    preceding: int
    refusals: Refusals | None = None
