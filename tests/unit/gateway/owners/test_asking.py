"""Whose answers a gateway believes."""

from __future__ import annotations

from typing import Any, cast

import pytest

from services.common.clients.queue_link import QueueLink
from services.gateway.owners.asking import Asking
from services.gateway.owners.ownerless import Term
from services.rpc import queue_pb2 as pb

GIVEN = pb.QueueReply(message=pb.DeliveryBatch(uids=[5]))


class Process:
    """Owns a queue, as OwnerlessQueues says; its answers come when another term has begun, but for the last one."""

    def __init__(self, *answers: pb.QueueReply) -> None:
        self.answers = list(answers)
        self.epoch = 1
        self.asked: list[int] = []

    def knows(self, _queue_id: int) -> bool:
        return True

    def term_of(self, _queue_id: int) -> Term:
        return Term(cast("QueueLink", self), self.epoch)

    async def request(self, *, term: int, **_: Any) -> pb.QueueReply:
        self.asked.append(term)
        answer = self.answers.pop(0)
        self.epoch += bool(self.answers)
        return answer


@pytest.mark.parametrize(
    ("to_hold", "first", "asked"),
    [(True, GIVEN, [1, 2]), (True, pb.QueueReply(), [1]), (False, GIVEN, [1])],
    ids=["a message to hold", "there was none", "a message that is settled"],
)
async def test_an_answer_of_a_former_owner(*, to_hold: bool, first: pb.QueueReply, asked: list[int]) -> None:
    """Messages that it gave are asked for again at the next owner; all other answers were true when given."""
    process = Process(first, pb.QueueReply(message_count=7))
    reply = await Asking(cast("Any", process)).ask(1, to_hold=to_hold)
    assert process.asked == asked
    assert reply == (first if len(asked) == 1 else pb.QueueReply(message_count=7))
