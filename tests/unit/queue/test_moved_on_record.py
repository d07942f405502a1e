"""What is on record of messages that were moved."""

from __future__ import annotations

import pytest

from services.common.ledger.encoding import Sealed
from services.common.ledger.ledger import Ledger
from services.common.ledger.row_recorder import RowRecorder
from services.rpc import ledger_pb2 as ledger
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House
from tests.unit.queue.test_selecting import TAKE, T, chosen, moved


@pytest.mark.parametrize("durable", [True, False])
async def test_moved_messages_went_on(house: House, monkeypatch: pytest.MonkeyPatch, durable: bool) -> None:
    """Nobody accepted them: they are told as moved, and where to."""
    sealed: list[Sealed] = []
    recorder = RowRecorder("queue", "queue-1", sealed.append)
    await house.queues.pop("queue-1").stop()
    monkeypatch.setattr(Ledger, "start", lambda its: setattr(its, "recorder", recorder))
    await house.start_queue("queue-1")
    source, target = await house.declare("a", durable=durable), await house.declare("b", durable=durable)
    link = await house.link()
    await link.publish(source, [b"0", b"1"], persistent=durable)
    [taken] = await chosen(link, 1, source, TAKE)
    await moved(link, taken, source, target, pb.TransactionStep.COMPLETE)
    recorder.seal()
    batch = ledger.LedgerBatch.FromString(b"".join(each.payload for each in sealed))
    rows = zip(batch.stages, batch.place, batch.reason, strict=True)
    ways = [(stage, batch.places[place], batch.words[reason]) for stage, place, reason in rows]
    assert [(p.queue, p.target, why) for stage, p, why in ways if stage == ledger.DEAD_LETTERED] == [
        ("a", "b", "moved")
    ]
    assert [p.queue for stage, p, _ in ways if stage == ledger.ROUTED] == ["b"]
    assert [each.firsts for each in batch.successions] == [[T + 1]]
    assert ledger.SETTLED not in batch.stages
