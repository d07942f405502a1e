"""A transaction of management's: queue processes prepare their parts, the store decides, they carry it out.

As the transactions of clients (services/gateway/sessions/coordinator.py), of which it is one to all others: whoever
dies meanwhile, all parts of it are done, or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from services.common.clients.store import StoreClient
from services.common.clock import monotonic
from services.common.errors import BrokerError, PreconditionFailed, Unavailable
from services.mgmt.in_queues.stream import OwnerStream
from services.rpc import queue_pb2 as pb

_DOUBT: Final = 60.0  # seconds in which the store is asked
_AGAIN: Final = 0.2
_NOT_NOW: Final = frozenset({pb.NOT_OWNER, pb.UNAVAILABLE})


class Part(NamedTuple):
    """Of one queue process."""

    batch: pb.PublishBatch | None = None
    settle: pb.Settle | None = None
    copied: pb.Copied | None = None  # what it puts on record


async def commit(store: StoreClient, transaction: int, parts: Mapping[OwnerStream, Part]) -> None:
    """Returns when all of it is done. Raises BrokerError when none of it is, or when that is not known: it says so."""
    prepared = await asyncio.gather(*(stream.prepare(transaction, *part) for stream, part in parts.items()))
    if wrong := next((each for each in prepared if each.reason != pb.NONE), None):
        await _abort(transaction, parts)
        raise _refusal(wrong)
    staged = sum(each.parts for each in prepared)
    if staged or len(parts) > 1:
        await _decide(store, transaction, staged, parts)
        # It is decided: whoever does not answer carries it out when it asks the store.
        await asyncio.gather(*(stream.complete(transaction) for stream in parts), return_exceptions=True)
    else:
        await _complete(store, transaction, parts)


async def _complete(store: StoreClient, transaction: int, parts: Mapping[OwnerStream, Part]) -> None:
    """The only one that takes part decides; where it was lost, both sides ask the store."""
    [stream] = parts
    try:
        done = await stream.complete(transaction)
    except Unavailable:
        done = False
    if not done:
        await _decide(store, transaction, 0, parts)


async def _decide(store: StoreClient, transaction: int, staged: int, parts: Mapping[OwnerStream, Part]) -> None:
    give_up = monotonic() + _DOUBT
    while True:
        try:
            outcome = await store.commit_transaction(transaction, staged)
        except BrokerError:
            # Not resolved: that would abort a transaction when the store is merely slow.
            if monotonic() > give_up:
                raise Unavailable("the store does not say whether messages were moved") from None
            await asyncio.sleep(_AGAIN)
        else:
            break
    if not outcome.committed:
        await _abort(transaction, parts)
        raise Unavailable("a queue process was lost; try again")


async def _abort(transaction: int, parts: Mapping[OwnerStream, Part]) -> None:
    with suppress(Unavailable):  # it asks the store
        await asyncio.gather(*(stream.abort(transaction) for stream in parts))


def _refusal(prepared: pb.Prepared) -> BrokerError:
    if prepared.reason in _NOT_NOW:
        return Unavailable("a queue has another owner by now; try again")
    return PreconditionFailed(prepared.text or "a queue does not take the messages")
