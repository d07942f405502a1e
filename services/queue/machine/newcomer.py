"""A consumer as a gateway has it attached."""

from __future__ import annotations

from services.common.selectors.selector import selector
from services.queue.machine.consumers import Consumer, Link
from services.queue.machine.delivery.interest import Interest
from services.rpc import queue_pb2 as pb


def newcomer(attach: pb.AttachConsumer, link: Link) -> Consumer:
    """What the gateway behind `link` asks for. Raises InvalidSelector, which its gateway has not let through."""
    return Consumer(
        attach.consumer,
        link,
        tag=attach.tag,
        connection=attach.connection,
        exclusive=attach.exclusive,
        settled=attach.settled,
        browse=attach.browse,
        priority=attach.priority,
        messages=attach.messages,
        size=attach.bytes,
        age=attach.age,
        activated=attach.activated,
        holds=bool(attach.held),
        interest=Interest(selector(attach.selector)) if attach.selector else None,
    )
