"""What is made of the store's answer to a transaction's frames, of one or of several."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.common.errors import PreconditionFailed, Unavailable
from services.queue.links.frames_answered import acks_of, why_not
from services.rpc import queue_pb2 as pb
from services.rpc.store_pb2 import JournalAck

_ACK, _AWAY, _REFUSED = JournalAck(), Unavailable("away"), PreconditionFailed("too large")


@pytest.mark.parametrize(
    ("said", "acks"),
    [(_ACK, [_ACK]), ([_ACK, _AWAY], [_ACK, _AWAY]), ([], []), (_AWAY, [_AWAY]), (None, [])],
    ids=["one", "several", "none", "failed", "cancelled"],
)
async def test_acks(said: Any, acks: list[object]) -> None:
    """Each frame's, or why there is none; nothing where it was cancelled."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    if said is None:
        answer.cancel()
    elif isinstance(said, Exception):
        answer.set_exception(said)
    else:
        answer.set_result(said)
    assert acks_of(answer) == acks


def test_why_not() -> None:
    """What the store refuses for good is told with its text; all else may be tried again."""
    assert why_not([_AWAY, _REFUSED]) == (pb.OTHER, "too large")
    assert why_not([_AWAY]) == (pb.UNAVAILABLE, "")
