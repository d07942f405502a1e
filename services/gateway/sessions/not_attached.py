"""Why a consumer that asked to be attached is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from services.common.errors import AccessRefused, BrokerError, InternalError, LinkStolen, NotFound
from services.gateway.sessions.consumer import Consumer, ConsumerState
from services.rpc import queue_pb2 as pb

_DELETED: Final = "the queue was deleted"
_REFUSALS: Final[Mapping[pb.Reason.ValueType, tuple[type[BrokerError], str]]] = {
    pb.EXCLUSIVE_USE: (AccessRefused, "queue in exclusive use"),
    pb.UNKNOWN_QUEUE: (NotFound, _DELETED),
    pb.OTHER: (InternalError, "the queue cannot be served"),
}


def why_not(consumer: Consumer, attached: pb.Attached) -> BrokerError | None:
    """What its client is told, by an owner's answer; None if it is attached, or another owner is to be asked.

    It may have ended since the owner has answered.
    """
    if consumer.stolen:
        return LinkStolen("the link is attached again, on another connection")
    if consumer.state is ConsumerState.ENDED:
        return NotFound(_DELETED)
    if (refusal := _REFUSALS.get(attached.reason)) is None:
        return None
    kind, text = refusal
    return kind(attached.text or text)
