"""What owners of partitions put on record of themselves."""

from __future__ import annotations

import pytest

from services.common.ledger.encoding import Sealed
from services.common.ledger.ledger import Ledger
from services.common.ledger.row_recorder import RowRecorder
from services.rpc.ledger_pb2 import HANDED_OVER, TAKEN_OVER, LedgerBatch
from tests.support.queue_house import House


async def test_owners_say_what_they_take_over_and_hand_over(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each partition given up in good order is on record, and each that is taken over, also with nothing in it."""
    sealed: list[Sealed] = []
    recorder = RowRecorder("queue", "queue-1", sealed.append)
    await house.queues.pop("queue-1").stop()
    monkeypatch.setattr(Ledger, "start", lambda ledger: setattr(ledger, "recorder", recorder))
    await house.start_queue("queue-1")
    await house.queues.pop("queue-1").stop()
    recorder.seal()
    (batch,) = (LedgerBatch.FromString(each.payload) for each in sealed)
    places = [batch.places[place] for place in batch.place]
    told = [(stage, place.partition, place.epoch) for stage, place in zip(batch.stages, places, strict=True)]
    every = range(house.settings.partitions)
    assert sorted(told) == [(stage, number, 2) for stage in (TAKEN_OVER, HANDED_OVER) for number in every]
    assert not any(batch.ranges)
