"""The ledger tells what the model knows: read row by row, by code that shares nothing with its writers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from pamqp import commands

from services.rpc.ledger_pb2 import LedgerBatch
from tests.simulation.amqp_1_0.messages import DESCRIBED, read
from tests.simulation.choices import is_ring
from tests.simulation.history import Delivered, Sent
from tests.simulation.judge.facts import Facts, Violation, told
from tests.simulation.judge.lost import promised

# What may happen without anything missing in the record: no process is killed, and all can reach the bus.
_WHOLE = {
    "move", "tear", "slow", "disk_slow", "disk_full", "disk_low", "disk_fails", "add_queue_process",
    "start_again",
}  # fmt: skip
_THERE = {"enqueued", "recovered", "dropped", "dead_lettered"}


class Record:
    """Rows by message, and by message and queue."""

    def __init__(self, ledger: Any) -> None:
        self.ids: dict[int, str] = {}
        self.of_message: dict[str, list[str]] = defaultdict(list)
        self.of_copy: dict[tuple[str, str], list[tuple[str, str, int]]] = defaultdict(list)  # stage, outcome, epoch
        for raw in ledger._batches:
            self._identify(LedgerBatch.FromString(raw))
        for row in ledger.rows():
            for uid in row.uids:
                if (message := self.ids.get(uid)) is None:
                    continue  # a dead letter goes on under another number
                if row.place.queue:
                    self.of_copy[message, row.place.queue].append((row.stage, row.outcome, row.place.epoch))
                else:
                    self.of_message[message].append(row.stage)

    def _identify(self, batch: LedgerBatch) -> None:
        for one in batch.identified:
            shared = len(one.properties) == 1
            for index, uid in enumerate(one.uids):
                raw = one.properties[0 if shared else index]
                self.ids[uid] = _message_id(raw)


def _message_id(raw: bytes) -> str:
    if raw.startswith(DESCRIBED):
        return read(raw).properties.message_id or ""
    properties = commands.Basic.Properties()
    properties.unmarshal(int.from_bytes(raw[:2], "big"), raw[2:])
    return properties.message_id or ""


def untold(facts: Facts) -> Iterator[Violation]:
    """Where nothing can be missing from the record, it has every message, every copy, and what became of it."""
    history = facts.history
    if history.ledger is None or not {fault.what for fault in history.faults} <= _WHOLE:
        return
    record = Record(history.ledger)
    for sent in history.sent.values():
        yield from _of_message(facts, record, sent)
    for each in facts.taken:
        sent = history.sent.get(each.id)
        if sent and not each.deaths and facts.stays(each.host, each.queue):
            yield from _of_delivery(facts, record, sent, each)


def _of_message(facts: Facts, record: Record, sent: Sent) -> Iterator[Violation]:
    stages = record.of_message.get(sent.id, [])
    if sent.confirmed is not None and (stages.count("received"), stages.count("confirmed")) != (1, 1):
        yield Violation("the ledger agrees", f"{told(sent)} was confirmed; on record: {stages}")
    if not promised(facts, sent):
        return
    for queue in filter(lambda name: facts.stays(sent.host, name), sorted(facts.routes(sent).must)):
        kinds = {stage for stage, *_ in record.of_copy.get((sent.id, queue), ())}
        if not kinds & _THERE:
            yield Violation("the ledger agrees", f"{told(sent)} is not on record in {queue}: {sorted(kinds)}")


def _of_delivery(facts: Facts, record: Record, sent: Sent, delivered: Delivered) -> Iterator[Violation]:
    rows = record.of_copy.get((sent.id, delivered.queue), [])
    if not any(stage == "delivered" for stage, *_ in rows):
        yield Violation("the ledger agrees", f"{told(sent)} was delivered from {delivered.queue}; on record: {rows}")
    acknowledged = delivered.settled_as == "ack" and delivered.known is not None and not delivered.transaction
    if facts.may_be_taken_from(delivered, facts.history.time_of(delivered.settled or 0)):
        acknowledged = False
    # An owner whose leases ran out drops what is not on disk, and what was acknowledged meanwhile with it; a ring drops
    # what somebody holds.
    may_go = is_ring(facts.queues[delivered.host, delivered.queue].arguments) or not facts.is_on_disk(delivered)
    gone = may_go and any(stage == "dropped" for stage, *_ in rows)
    terms = [epoch for stage, outcome, epoch in rows if (stage, outcome) == ("settled", "accepted")]
    # The next owner hears it again, and tells it, where the one before could not write it down.
    once = len(terms) == len(set(terms)) and (gone or terms)
    if acknowledged and not once:
        yield Violation(
            "the ledger agrees",
            f"{told(sent)} was acknowledged in {delivered.queue}; on record in terms {terms}: {rows}",
        )


def misled(facts: Facts) -> Iterator[Violation]:
    """It never tells of a message in a queue where it cannot have been."""
    if facts.history.ledger is None:
        return
    for (message, queue), rows in Record(facts.history.ledger).of_copy.items():
        sent = facts.history.sent.get(message)
        if sent and queue not in facts.routes(sent).may and any(stage == "enqueued" for stage, *_ in rows):
            yield Violation("the ledger agrees", f"{told(sent)} is on record in {queue}, where no binding leads")
