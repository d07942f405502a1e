"""Rules of capture, and what they cost: records in the store, for the command line and mgmt."""

from __future__ import annotations

from services.common.capture import cost, rules
from services.common.capture.cost import Account, Captured, captured
from services.common.capture.rules import Rule, Terms
from services.common.clients.calls import Client
from services.common.clients.store import StoreClient
from services.common.clock import epoch_ms
from services.common.errors import NotFound
from services.rpc.store_pb2 import Record


class CaptureRules:
    """Every call raises the BrokerError that the store answered with, or Unavailable."""

    def __init__(self, store: StoreClient) -> None:
        self._store = store

    async def put(self, name: str, terms: Terms) -> Rule:
        """Adds a rule, or replaces the one of that name; it begins now, and gateways act on it a moment later."""
        rule = Rule(name=name, made_ms=epoch_ms(), **terms.model_dump(exclude_unset=True))
        await self._store.put_records([Record(kind=rules.RECORD_KIND, key=name, value=rule.to_json())])
        return rule

    async def remove(self, name: str) -> None:
        """Raises NotFound if there is no such rule. What it has captured stays, the account of its cost is deleted."""
        found, accounts = await self._listed()
        if all(rule.name != name for rule in found):
            raise NotFound(f"no capture rule '{name}'")
        theirs = [Record(kind=cost.RECORD_KIND, key=each.key) for each in accounts if each.rule == name]
        await self._store.put_records(deletes=[Record(kind=rules.RECORD_KIND, key=name), *theirs])

    async def rules(self) -> list[Captured]:
        """All of them, by name, with what they have cost."""
        found, accounts = await self._listed()
        return captured(found, accounts, epoch_ms())

    async def _listed(self) -> tuple[list[Rule], list[Account]]:
        records = await self._store.list_records([rules.RECORD_KIND, cost.RECORD_KIND])
        found = [Rule.from_json(each.value) for each in records if each.kind == rules.RECORD_KIND]
        return found, [Account.model_validate_json(each.value) for each in records if each.kind == cost.RECORD_KIND]


class CaptureClient(CaptureRules, Client):
    """Capture rules over a connection of their own to the store."""

    def __init__(self, address: str) -> None:
        super().__init__(StoreClient(address))

    async def close(self) -> None:
        """Ends the connection."""
        await self._store.close()
