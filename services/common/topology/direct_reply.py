"""Direct reply-to, RabbitMQ's pseudo-queue: the name that clients know, and those of the queues behind it.

A client that consumes from it gets the answers to its requests, which name it as their reply-to. Behind it a gateway
makes a queue, whose name takes its place in requests: so any gateway can route the answers.
"""

from __future__ import annotations

from typing import Final

PSEUDO_QUEUE: Final = "amq.rabbitmq.reply-to"
_QUEUES: Final = f"{PSEUDO_QUEUE}."


def behind(secret: str) -> str:
    """The name of a queue behind it. Who knows the name may answer, as with RabbitMQ: it is not to be guessed."""
    return _QUEUES + secret


def is_behind(queue: str) -> bool:
    """Whether a queue of that name is one that a gateway has made for replies."""
    return queue.startswith(_QUEUES)


def is_meant(queue: str) -> bool:
    """Whether a client means replies by it: the pseudo-queue, or a queue behind it."""
    return queue.startswith(PSEUDO_QUEUE)
