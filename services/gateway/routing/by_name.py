"""The default exchange where queues are known by their names: nothing is kept twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from services.common.topology.exchanges.exchange_type import Binding, Destination, ExchangeType
from services.common.topology.slots import SlotName
from services.rpc.router_pb2 import QueueDefinition

QueuesByName = Mapping[SlotName, QueueDefinition]


class _ByName:
    """Of one virtual host."""

    needs_headers = False

    def __init__(self, queues: QueuesByName, host: str) -> None:
        self._queues = queues
        self._host = host

    def bind(self, binding: Binding) -> None:
        """Nobody can; queues come and go by themselves."""

    def unbind(self, binding: Binding) -> None:
        """As above."""

    def route(self, keys: Collection[str], headers: Mapping[str, Any]) -> set[Destination]:  # noqa: ARG002 - the protocol's
        found = (self._queues.get(SlotName(self._host, key)) for key in keys)
        return {queue.id for queue in found if queue}

    def only_key(self, binding: Binding) -> str | None:
        return binding.routing_key


def by_name(queues: QueuesByName, host: str) -> ExchangeType:
    return _ByName(queues, host)
