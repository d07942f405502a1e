"""Sampling rules and the state of spans, for the command line: records in the store."""

from __future__ import annotations

from services.common.clients.calls import Client
from services.common.clients.store import StoreClient
from services.common.errors import NotFound
from services.common.telemetry import rules, status
from services.common.telemetry.rules import Rule
from services.common.telemetry.status import Status
from services.rpc.store_pb2 import Record


class TracingClient(Client):
    """A connection to the store; every call raises the BrokerError that it answered with, or Unavailable."""

    def __init__(self, address: str) -> None:
        self._store = StoreClient(address)

    async def close(self) -> None:
        """Ends the connection."""
        await self._store.close()

    async def put(self, rule: Rule) -> None:
        """Adds a rule, or replaces the one of that name; gateways act on it a moment later."""
        await self._store.put_records([Record(kind=rules.RECORD_KIND, key=rule.name, value=rule.to_json())])

    async def remove(self, name: str) -> None:
        """Raises NotFound if there is no such rule."""
        if all(rule.name != name for rule in await self.rules()):
            raise NotFound(f"no tracing rule '{name}'")
        await self._store.put_records(deletes=[Record(kind=rules.RECORD_KIND, key=name)])

    async def rules(self) -> list[Rule]:
        """All rules, by name."""
        records = await self._store.list_records([rules.RECORD_KIND])
        return sorted((Rule.from_json(record.value) for record in records), key=lambda rule: rule.name)

    async def processes(self) -> list[Status]:
        """The last status of each process's spans; a killed process is listed until the store starts anew."""
        records = await self._store.list_records([status.RECORD_KIND])
        found = (Status.model_validate_json(record.value) for record in records)
        return sorted(found, key=lambda one: (one.service, one.instance))
