"""What owners of partitions put on record of themselves."""

from __future__ import annotations

from collections.abc import Callable

from services.rpc.ledger_pb2 import HANDED_OVER, TAKEN_OVER, LedgerBatch
from tests.support.queue_house import House


async def test_owners_say_what_they_take_over_and_hand_over(house: House, recorded: Callable[[], LedgerBatch]) -> None:
    """Each partition given up in good order is on record, and each that is taken over, also with nothing in it."""
    await house.queues.pop("queue-1").stop()
    batch = recorded()
    places = [batch.places[place] for place in batch.place]
    told = [(stage, place.partition, place.epoch) for stage, place in zip(batch.stages, places, strict=True)]
    every = range(house.settings.partitions)
    assert sorted(told) == [(stage, number, 2) for stage in (TAKEN_OVER, HANDED_OVER) for number in every]
    assert not any(batch.ranges)
