"""What the store has said of the frames in which a transaction is journalled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from services.common.errors import PreconditionFailed
from services.rpc import queue_pb2 as pb
from services.rpc import store_pb2


def acks_of(
    answer: asyncio.Future[store_pb2.JournalAck] | asyncio.Future[list[store_pb2.JournalAck | BaseException]],
) -> list[store_pb2.JournalAck | BaseException]:
    """What became of the frames of a transaction, of one or of several."""
    if answer.cancelled():
        return []
    if failure := answer.exception():
        return [failure]
    acks = answer.result()
    return acks if isinstance(acks, list) else [acks]


def refusal_in(failures: Sequence[BaseException]) -> PreconditionFailed | None:
    """The first that the store will not take, however often it is asked."""
    return next((failure for failure in failures if isinstance(failure, PreconditionFailed)), None)


def why_not(failures: Sequence[BaseException]) -> tuple[pb.Reason.ValueType, str]:
    """OTHER for what the store refuses for good, which is not tried again; else UNAVAILABLE."""
    refused = refusal_in(failures)
    return (pb.OTHER, refused.text) if refused else (pb.UNAVAILABLE, "")
