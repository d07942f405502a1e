"""Where a session publishes, and how much: noted once for each batch, told when management asks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

from services.common.message.alike import total
from services.gateway.vocabulary import Kind, Publish

MOST: Final = 1000
"""Of one session; beyond, the one that came first is forgotten."""

Noted: TypeAlias = "dict[tuple[int, str], list[int]]"
"""By link, 0 without one, and exchange: messages, and bytes of their bodies."""


def note(noted: Noted, request: Publish, kinds: Collection[Kind]) -> None:
    """`kinds` are those of the request, each once."""
    if len({kind.facts.exchange for kind in kinds}) == 1:
        exchange = next(iter(kinds)).facts.exchange
        _add(noted, (request.link, exchange), len(request.bodies), total(request.bodies))
    else:
        for kind, body in zip(request.kinds, request.bodies, strict=True):
            _add(noted, (request.link, kind.facts.exchange), 1, len(body))


def _add(noted: Noted, key: tuple[int, str], count: int, size: int) -> None:
    if (each := noted.get(key)) is None:
        each = noted[key] = [0, 0]
        if len(noted) > MOST:
            del noted[next(iter(noted))]
    each[0] += count
    each[1] += size
