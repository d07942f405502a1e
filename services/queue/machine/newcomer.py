"""A consumer as a gateway has it attached."""

from __future__ import annotations

from typing import Final

from services.common.selectors.selector import all_of, selector
from services.queue.machine.consumers import Consumer, ConsumerLink
from services.queue.machine.delivery.interest import Interest
from services.queue.machine.queue import Queue
from services.rpc import queue_pb2 as pb

_NEVER: Final = 1 << 62  # Unix ms


def newcomer(attach: pb.AttachConsumer, link: ConsumerLink, queue: Queue, now: int) -> Consumer:
    """What the gateway behind `link` asks for, of a queue. Raises InvalidSelector."""
    return Consumer(
        attach.consumer,
        link,
        tag=attach.tag,
        connection=attach.connection,
        exclusive=attach.exclusive,
        settled=attach.settled,
        browse=attach.browse or queue.options.nondestructive,
        priority=attach.priority,
        messages=attach.messages,
        size=attach.bytes,
        age=attach.age,
        activated=attach.activated,
        holds=bool(attach.held),
        interest=_interest(attach, queue, now),
    )


def _interest(attach: pb.AttachConsumer, queue: Queue, now: int) -> Interest | None:
    """In what all selectors select, unless it came on its own connection, or before its time; None: in everything."""
    said = [text for text in (attach.selector, queue.options.default_selector) if text]
    if not said and not attach.no_local and not attach.HasField("replay_ms"):
        return None
    chosen = all_of([selector(text) for text in said]) if said else None
    not_of = attach.connection if attach.no_local else ""
    if not attach.HasField("replay_ms"):
        return Interest(chosen, not_of)
    since = now - attach.replay_ms if attach.again or attach.replay_ms else _NEVER
    return Interest(chosen, not_of, since=since, new=queue.picking.next_position)
