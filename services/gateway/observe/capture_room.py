"""What a gateway takes for a capture rule, out of the room that the rule has in all gateways together.

Messages wait, a few hundredths of a second, until what they take is claimed: services/common/capture/cost.py says how.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from services.common.capture.cost import RECORD_KIND, Account, Cost, taken_by_others
from services.common.capture.rules import Rule
from services.common.clients.overtaken import decided_again
from services.common.clients.store import Read
from services.rpc.ledger_pb2 import Captured
from services.rpc.store_pb2 import Record, Unchanged

_MOST_WAITING = 4 << 20  # bytes for each rule: as much as the bus takes at a time


class Store(Protocol):
    """Where claims are kept; both raise a BrokerError where they are not."""

    async def put_records(
        self,
        puts: Iterable[Record] = (),
        deletes: Iterable[Record] = (),
        *,
        unchanged: Iterable[Unchanged] = (),
    ) -> int:
        """Returns when they are kept. Raises Overtaken where something is not `unchanged`."""

    async def read_records(self, *kinds: str) -> Read:
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

    def share(self, others: int) -> None:
        """Leaves out of what waits what there is no room for beside the bytes that the others have."""
        self._others = others
        waiting, self._waiting, self._waits = self._waiting, deque(), 0
        for captured, size in waiting:
            if others + self._cost.bytes + self._waits + size <= self.rule.limit:
                self.want(captured, size)
            else:
                self.leave_out()

    def grant(self, claimed: int, put: Callable[[Captured], bool]) -> None:
        """Takes what waits, up to `claimed` bytes in all, by `put`, which may refuse."""
        while self._waiting:
            captured, size = self._waiting[0]
            if self._cost.bytes + size > claimed:
                return
            self._waiting.popleft()
            self._waits -= size
            if put(captured):
                self._cost += Cost(messages=1, bytes=size)
            else:
                self.leave_out()


class Claims:
    """One gateway's, in the store."""

    def __init__(self, instance: str, store: Store) -> None:
        self._instance = instance
        self._store = store
        self._told: dict[str, Account] = {}

    async def settle(self, takings: Collection[Taking], now_ms: int, put: Callable[[Captured], bool]) -> None:
        """Tells what there is to tell, and grants what waits. Raises a BrokerError when the store cannot be asked."""
        for taking, claimed in (await self._claim(takings, now_ms)).items():
            taking.grant(claimed, put)

    @decided_again
    async def _claim(self, takings: Collection[Taking], now_ms: int) -> Mapping[Taking, int]:
        """What waits and has room, on record for nobody else: bytes of each, in all."""
        read = await self._store.read_records(RECORD_KIND)
        known = [Account.model_validate_json(record.value) for record in read.records]
        for taking in takings:
            taking.share(taken_by_others(taking.rule, self._instance, known))
        accounts = {taking: taking.account(self._instance) for taking in takings}
        over = [account for account in known if account.is_over(now_ms)]
        await self._tell({account.key: account for account in accounts.values()}, over, read.unchanged)
        return {taking: account.claimed for taking, account in accounts.items()}

    async def _tell(
        self, accounts: Mapping[str, Account], over: Iterable[Account], unchanged: Iterable[Unchanged]
    ) -> None:
        puts = [_record(account) for key, account in accounts.items() if self._told.get(key) != account]
        deletes = [Record(kind=RECORD_KIND, key=account.key) for account in over]
        self._told = {}  # nobody knows what is on record, unless the store answers
        if puts or deletes:
            await self._store.put_records(puts, deletes, unchanged=unchanged)
        self._told = dict(accounts)


def _record(account: Account) -> Record:
    return Record(kind=RECORD_KIND, key=account.key, value=account.model_dump_json().encode())
