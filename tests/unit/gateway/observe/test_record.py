"""What a gateway tells the ledger of messages, however mixed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.ledger.encoding import Mixture
from services.common.ledger.place import LedgerPlace
from services.common.ledger.reading import rows_of
from services.common.ledger.row_recorder import RowRecorder
from services.common.message.amqp_0_9.format import FORMAT
from services.common.message.facts import Attributes, Facts
from services.gateway.observe.record import ClientRecord
from services.gateway.vocabulary import Kind, Publish
from services.rpc.ledger_pb2 import CONFIRMED, RECEIVED, ROUTED, LedgerBatch
from services.rpc.router_pb2 import QueueDefinition

HERE = LedgerPlace("/", protocol="amqp", connection="1.1")
QUEUES = {number: QueueDefinition(name=f"q{number}", partition=number) for number in (1, 2, 3)}
GONE = 9  # a queue that is no more
KINDS = [
    Kind(Facts("/", exchange, key, "amqp-0-9", priority=priority), Attributes())
    for exchange in ("", "ex")
    for key in ("a", "b", "c")
    for priority in (0, 5)
]
TARGETS: list[tuple[int, ...]] = [(), (1,), (2,), (1, 2), (3, 1, 2), (GONE,), (GONE, 1)]
Told = tuple[int, str, str, str, int]


class Heard:
    """A recorder that keeps what it is told, message by message."""

    on = True

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.bytes = 0

    def record(self, stage: int, place: LedgerPlace, uids: Sequence[int], *, size: int = 0, **_: object) -> None:
        self.bytes += size
        self.told += [(stage, place.exchange, place.routing_key, place.queue, uid) for uid in uids]

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        self.bytes += sum(mixture.sizes)
        assert list(uids) == sorted(uids)
        for uid, number in zip(uids, mixture.which, strict=True):
            base, key = mixture.places[number]
            assert not base.routing_key
            self.told.append((stage, base.exchange, key, base.queue, uid))

    def identify(self, message_format: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """Not asked here."""


MESSAGES = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(TARGETS)), min_size=1, max_size=12)


@given(MESSAGES, st.sampled_from(["message", "key", "request"]), st.data())
def test_each_message_is_told_of_where_it_went(
    messages: list[tuple[Kind, tuple[int, ...]]], decided_by: str, data: st.DataObject
) -> None:
    """Received, routed to each of its queues, confirmed: with exchange and key of each, among any others."""
    kinds = [kind for kind, _ in messages]
    targets = [each for _, each in messages]
    if decided_by == "key":  # as it mostly is
        of_key = dict(zip([kind.facts.routing_key for kind in kinds], targets, strict=True))
        targets = [of_key[kind.facts.routing_key] for kind in kinds]
    if decided_by == "request":
        targets = targets[:1] * len(messages)
    confirmed = sorted(data.draw(st.sets(st.integers(0, len(messages) - 1))))
    heard, uids = Heard(), range(100, 100 + len(messages))
    bodies = [bytes(index) for index in range(len(messages))]
    publish = Publish(1, kinds, [b"\0\0"] * len(messages), bodies)
    published = ClientRecord(heard, HERE, QUEUES).received(publish, uids)
    published.routed(targets)
    published.confirmed(confirmed)
    expected: list[Told] = []
    for index, (kind, its) in enumerate(zip(kinds, targets, strict=True)):
        where = kind.facts.exchange, kind.facts.routing_key
        expected.append((RECEIVED, *where, "", uids[index]))
        expected += [(ROUTED, *where, f"q{each}", uids[index]) for each in its if each != GONE]
        if index in confirmed:
            expected.append((CONFIRMED, *where, "", uids[index]))
    assert sorted(heard.told) == sorted(expected)
    assert heard.bytes == sum(map(len, bodies)) + 2 * len(messages)


@pytest.mark.parametrize("keys", [1, 2, 2000])
def test_much_that_identifies_messages_stays_below_the_limit_of_nats(keys: int) -> None:
    """As of some large reads in one turn, of messages with ids and headers: they are told of in portions."""
    batches = list[LedgerBatch]()
    recorder = RowRecorder("gateway", "g", lambda each: batches.append(LedgerBatch.FromString(each.payload)), later=id)
    record = ClientRecord(recorder, HERE, QUEUES)
    kinds = [Kind(Facts("/", "", f"k{number}", "amqp-0-9"), Attributes()) for number in range(keys)]
    headers = FORMAT.with_headers(b"\0\0", {"h": "x" * 450})
    properties = [FORMAT.with_text(headers, "message-id", f"m{number}") for number in range(2000)]
    publish = Publish(1, (kinds * 2000)[:2000], properties, [b"12"] * 2000)
    for first in range(0, 8000, 2000):
        record.received(publish, range(first, first + 2000))
    recorder.seal()
    assert max(batch.ByteSize() for batch in batches) < 1 << 19
    assert sum(sum(batch.bytes) for batch in batches) == 4 * (sum(map(len, properties)) + 2 * 2000)
    assert [uid for batch in batches for each in batch.identified for uid in each.uids] == [*range(8000)]
    told = {
        uid: row.place.routing_key
        for batch in batches
        for row in rows_of(batch)
        for first, last in row.uids
        for uid in range(first, last + 1)
    }
    assert told == {uid: f"k{uid % 2000 % keys}" for uid in range(8000)}
