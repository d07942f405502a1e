"""What clients have settled of queues whose owner is another one by then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.gateway.adrift import Adrift
from services.gateway.transaction import Settlement
from services.rpc import queue_pb2 as pb

QUEUE = 1


@pytest.mark.parametrize(("outcome", "told"), [(pb.ACCEPT, True), (pb.REJECT, True), (pb.RELEASE, False)])
async def test_what_was_committed_before_the_next_owner_was_asked(outcome: pb.Outcome.ValueType, *, told: bool) -> None:
    """It is told the next owner with what is held; what was given back is nobody's there anyway."""
    publisher = SimpleNamespace(link_of=lambda _: None, owners=lambda: iter(()))
    queues = {QUEUE: SimpleNamespace(partition=0)}
    adrift = Adrift(cast("Any", publisher), cast("Any", queues), (), lambda: 1, lambda _: None)
    holder = SimpleNamespace(queue_id=QUEUE, link=None)
    former = object()
    adrift.settle_elsewhere([Settlement(1, cast("Any", holder), 5, outcome)], cast("Any", {QUEUE: former}))
    assert (adrift._places[QUEUE].kept == [(outcome, [5])]) is told
