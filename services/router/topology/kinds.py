"""Which kinds of things there are to declare: plug-ins, handed in so that the topology needs no look-up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from services.common.topology.exchanges.exchange_type import ExchangeType


@dataclass(frozen=True, slots=True)
class Kinds:
    """What is installed."""

    exchange_types: Mapping[str, Callable[[], ExchangeType]]
    queue_types: Collection[str]
    overflow_policies: Collection[str]
