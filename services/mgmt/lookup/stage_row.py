"""A row of the ledger's `stages`, and which uids it speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

COLUMNS = (
    "epoch_us(time), stage, service, instance, row, virtual_host, exchange, routing_key, queue, partition, epoch, "
    "protocol, connection, client, consumer, attempt, outcome, reason, target, count, bytes, uids, successors"
)

Range = dict[str, int]


@dataclass(frozen=True, slots=True)
class StageRow:
    """As it is filed: services/common/ledger/README.md."""

    time_us: int
    stage: str
    service: str
    instance: str
    row: int
    virtual_host: str
    exchange: str
    routing_key: str
    queue: str
    partition: int
    epoch: int
    protocol: str
    connection: str
    client: str
    consumer: str
    attempt: int
    outcome: str
    reason: str
    target: str
    count: int
    bytes: int
    uids: list[Range]
    successors: list[Range]

    @property
    def identity(self) -> tuple[str, int, int, int]:
        """The same for two copies of a row: rows that were split by origin share a number, one may be filed twice."""
        return self.instance, self.row, self.uids[0]["first"], self.uids[-1]["last"]

    def has(self, uid: int) -> bool:
        """Whether the message is one of the row's."""
        return any(_in(uid, one) for one in self.uids)

    def successors_of(self, uid: int) -> list[int]:
        """What the message went on as."""
        return [to["first"] + uid - here["first"] for here, to in self._succession() if _in(uid, here)]

    def predecessors_of(self, uid: int) -> list[int]:
        """What went on as `uid`."""
        return [here["first"] + uid - to["first"] for here, to in self._succession() if _in(uid, to)]

    def _succession(self) -> Iterator[tuple[Range, Range]]:
        return zip(self.uids, self.successors, strict=False)


def _in(uid: int, one: Range) -> bool:
    return one["first"] <= uid <= one["last"]
