"""What services tell the ledger, as it goes over the bus, row by row."""

from __future__ import annotations

import asyncio
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from services.common.ledger.stream import MESSAGE_ID, SUBJECTS
from services.mgmt.ledger.decode import decode
from services.rpc.ledger_pb2 import LedgerBatch

QUIET = 0.7  # seconds in which every process has told what it has
_TURNS = 14


class ToldLedger:
    """Listens beside the stream; `rows` are as in the table `stages`, `ids` as in `ids`."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.ids: list[dict[str, Any]] = []
        self._heard_of: set[str] = set()
        self._client: Client | None = None

    async def listen(self, address: str) -> None:
        self._client = await nats.connect(address)
        await self._client.subscribe(SUBJECTS, cb=self._heard)

    async def stop(self) -> None:
        if self._client:
            await self._client.close()

    async def _heard(self, message: Msg) -> None:
        # A process that ends tells again what it has not heard the stream has; the stream drops that.
        number = (message.headers or {}).get(MESSAGE_ID, "")  # a sign of life has none
        if number in self._heard_of:
            return
        if number:
            self._heard_of.add(number)
        rows = decode([LedgerBatch.FromString(message.data)])
        self.rows += rows.stages.to_pylist()
        self.ids += rows.ids.to_pylist()

    def uids(self, message_id: str) -> list[int]:
        """The messages that were received with that id."""
        return sorted(each["first_uid"] for each in self.ids if each["id"] == message_id)

    def of(self, uid: int, queue: str | None = None) -> list[dict[str, Any]]:
        """The rows that tell of a message, by time; of one queue, or of all."""
        found = [row for row in self.rows if any(one["first"] <= uid <= one["last"] for one in row["uids"])]
        found = [row for row in found if queue is None or row["queue"] in {queue, ""}]
        return sorted(found, key=lambda row: row["time"])

    def way(self, uid: int, queue: str | None = None) -> list[str]:
        """Its stages: "routed", "settled rejected", "dropped maxlen", …"""
        return [" ".join(filter(None, (row["stage"], row["outcome"], row["reason"]))) for row in self.of(uid, queue)]

    def successor(self, uid: int) -> int:
        """What it was dead-lettered as."""
        for row in self.of(uid):
            if row["stage"] == "dead_lettered":
                pairs = zip(row["uids"], row["successors"], strict=True)
                return next(
                    new["first"] + uid - old["first"] for old, new in pairs if old["first"] <= uid <= old["last"]
                )
        raise AssertionError(f"{uid} was not dead-lettered: {self.way(uid)}")

    async def told(self, message_id: str, stage: str, count: int = 1) -> list[int]:
        """The uids of a message id, when that many rows of a stage tell of them and nothing more is on its way."""
        async with asyncio.timeout(10):
            while sum(step == stage for uid in self.uids(message_id) for step in self.way(uid)) < count:
                await asyncio.sleep(0.05)
        for _ in range(
            _TURNS
        ):  # in which others have theirs: all of it may be over at once, where a machine stands still
            await asyncio.sleep(QUIET / _TURNS)
        return self.uids(message_id)
