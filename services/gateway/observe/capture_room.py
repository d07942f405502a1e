"""What a gateway takes for a capture rule, out of the room that the rule has in all gateways together.

Messages wait, a few hundredths of a second, until what they take is claimed: services/common/capture/cost.py says how.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from services.common.capture.cost import RECORD_KIND, Account, Cost, taken_by_others
from services.common.capture.rules import Rule
from services.rpc.ledger_pb2 import Captured
from services.rpc.store_pb2 import Record

_MOST_WAITING = 4 << 20  # bytes for each rule: as much as the bus takes at a time


class Store(Protocol):
    """Where claims are kept; both raise a BrokerError where they are not."""

    async def put_records(self, puts: Iterable[Record] = (), deletes: Iterable[Record] = ()) -> int:
        """Returns when they are kept."""

    async def list_records(self, kinds: Iterable[str]) -> Sequence[Record]:
        """As they are now."""


class Taking:
    """A rule at work in one gateway."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._cost = Cost()
        self._others = 0  # bytes that the others have, as far as is known
        self._waiting: deque[tuple[Captured, int]] = deque()
        self._waits = 0  # bytes

    @property
    def waits(self) -> bool:
        """Whether there is something to be claimed."""
        return bool(self._waiting)

    @property
    def cost(self) -> Cost:
        """So far, and without what waits."""
        return self._cost

    def account(self, instance: str) -> Account:
        """What it has, and what it wants besides."""
        claimed = self._cost.bytes + self._waits
        rule = self.rule
        return Account(instance=instance, rule=rule.name, made_ms=rule.made_ms, cost=self._cost, claimed=claimed)

    def has_room(self, size: int) -> bool:
        """Whether so many bytes can be wanted; the others may have them all the same."""
        waits = self._waits + size
        return waits <= _MOST_WAITING and self._others + self._cost.bytes + waits <= self.rule.limit

    def want(self, captured: Captured, size: int) -> None:
        """It waits until it is claimed."""
        self._waiting.append((captured, size))
        self._waits += size

    def leave_out(self) -> None:
        """There is no room for a message."""
        self._cost += Cost(left_out=1)

    def grant(self, claimed: int, others: int, put: Callable[[Captured], bool]) -> None:
        """Takes what waits, up to `claimed` bytes in all, by `put`, which may refuse; what the others left no room for
        is left out.
        """
        self._others = others
        while self._waiting:
            captured, size = self._waiting[0]
            after = self._cost.bytes + size
            fits = others + after <= self.rule.limit
            if fits and after > claimed:
                return
            self._waiting.popleft()
            self._waits -= size
            if fits and put(captured):
                self._cost += Cost(messages=1, bytes=size)
            else:
                self.leave_out()


class Claims:
    """One gateway's, in the store."""

    def __init__(self, instance: str, store: Store) -> None:
        self._instance = instance
        self._store = store
        self._told: dict[str, Account] = {}

    async def settle(self, takings: Iterable[Taking], now_ms: int, put: Callable[[Captured], bool]) -> None:
        """Tells what there is to tell, and grants what waits. Raises a BrokerError when the store cannot be asked."""
        asked = [(taking, taking.account(self._instance)) for taking in takings]
        await self._tell({account.key: account for _, account in asked})
        if not any(taking.waits for taking, _ in asked):
            return
        accounts = await self._listed()
        for taking, account in asked:
            taking.grant(account.claimed, taken_by_others(taking.rule, self._instance, accounts), put)
        await self._forget(account for account in accounts if account.is_over(now_ms))

    async def _tell(self, accounts: Mapping[str, Account]) -> None:
        news = [account for key, account in accounts.items() if self._told.get(key) != account]
        if news:
            puts = [Record(kind=RECORD_KIND, key=each.key, value=each.model_dump_json().encode()) for each in news]
            await self._store.put_records(puts)
        self._told = dict(accounts)

    async def _listed(self) -> list[Account]:
        return [Account.model_validate_json(each.value) for each in await self._store.list_records([RECORD_KIND])]

    async def _forget(self, accounts: Iterable[Account]) -> None:
        deletes = [Record(kind=RECORD_KIND, key=account.key) for account in accounts]
        if deletes:
            await self._store.put_records([], deletes)
