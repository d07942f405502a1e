"""A consumer as a gateway has it attached."""

from __future__ import annotations

from services.common.selectors.selector import selector
from services.queue.machine.consumers import Consumer, ConsumerLink
from services.queue.machine.delivery.interest import Interest
from services.queue.machine.options import QueueOptions
from services.rpc import queue_pb2 as pb


def newcomer(attach: pb.AttachConsumer, link: ConsumerLink, options: QueueOptions) -> Consumer:
    """What the gateway behind `link` asks for, of a queue with these options. Raises InvalidSelector."""
    return Consumer(
        attach.consumer,
        link,
        tag=attach.tag,
        connection=attach.connection,
        exclusive=attach.exclusive,
        settled=attach.settled,
        browse=attach.browse or options.nondestructive,
        priority=attach.priority,
        messages=attach.messages,
        size=attach.bytes,
        age=attach.age,
        activated=attach.activated,
        holds=bool(attach.held),
        interest=_interest(attach.connection if attach.no_local else "", attach.selector, options.default_selector),
    )


def _interest(not_of: str, *texts: str) -> Interest | None:
    """In what all of these select, unless it came on that connection."""
    said = [text for text in texts if text]
    if not said:
        return Interest(None, not_of) if not_of else None
    return Interest(selector(" AND ".join(f"({text})" for text in said) if len(said) > 1 else said[0]), not_of)
