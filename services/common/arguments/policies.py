"""What policies can say of queues, as RabbitMQ's do, and what that comes to beside the arguments of a queue.

A word of a policy is an argument's name without its `x-`. To add one: the argument, in `_WORDS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from services.common.arguments import queue
from services.common.arguments.argument import Argument, Said
from services.common.arguments.reading import Wrong

_NO_EFFECT: Final = frozenset({
    "max-in-memory-bytes", "max-in-memory-length", "queue-leader-locator", "queue-master-locator", "queue-mode",
    "queue-version",
})  # fmt: skip
"""As the arguments of these names: checked, and without effect."""
_MIRRORS: Final = frozenset({
    "ha-mode", "ha-params", "ha-promote-on-failure", "ha-promote-on-shutdown", "ha-sync-batch-size", "ha-sync-mode",
})  # fmt: skip
"""Of mirrored queues, which are said in policies alone: every durable queue here outlives its process."""
_WORDS: Final[Mapping[str, Argument[Any]]] = {
    each.name.removeprefix("x-"): each
    for each in queue.ARGUMENTS
    if each.name.removeprefix("x-") in _NO_EFFECT
    or each
    in (
        queue.CONSUMER_TIMEOUT,
        queue.DEAD_LETTER_EXCHANGE,
        queue.DEAD_LETTER_KEY,
        queue.DEAD_LETTER_STRATEGY,
        queue.DELIVERY_LIMIT,
        queue.EXPIRES,
        queue.MAX_LENGTH,
        queue.MAX_LENGTH_BYTES,
        queue.MESSAGE_TTL,
        queue.ONCE,
        queue.ONCE_MOST,
        queue.ONCE_MS,
        queue.OVERFLOW,
        queue.RETRY,
        queue.RETRY_LEAST,
        queue.RETRY_MOST,
    )
}
LIMITS: Final = frozenset({
    "delivery-limit", "expires", "max-in-memory-bytes", "max-in-memory-length", "max-length", "max-length-bytes",
    "message-ttl",
})  # fmt: skip
"""What operators may limit. Of two that are said, the lower one counts, whoever says it."""

Definition = Mapping[str, Any]
"""What a policy says, by its words."""


def check(definition: Definition, *, operator: bool) -> None:
    """Raises Wrong for what is no word of such a policy, or a value that is none. One that says nothing is none."""
    if not definition:
        raise Wrong("definition", "must say something")
    for word, value in definition.items():
        if word in _MIRRORS and not operator:
            continue
        if word not in _WORDS or (operator and word not in LIMITS):
            raise Wrong(word, f"is not recognised in {'an operator policy' if operator else 'a policy'}")
        if wrong := _WORDS[word].check(value):
            raise Wrong(word, wrong)


def merged(policy: Definition, operator: Definition) -> dict[str, Any]:
    """What two policies of one queue say together."""
    found = {**operator, **policy}
    return found | {word: _lower(policy[word], operator[word]) for word in policy.keys() & operator.keys()}


def effective(said: Said, policy: Definition) -> dict[str, Any]:
    """What a queue's arguments and its policy come to: the arguments go before, but for limits that are lower."""
    found = dict(said)
    for word, value in policy.items():
        if (argument := _WORDS.get(word)) is None:
            continue
        its = argument.name
        found[its] = value if its not in found else _lower(found[its], value) if word in LIMITS else found[its]
    return found


def dumped(definition: Definition) -> bytes:
    """As it is kept and sent: equal ones are equal text."""
    return json.dumps(definition, sort_keys=True, ensure_ascii=False).encode() if definition else b""


def loaded(kept: bytes | str) -> dict[str, Any]:
    """The same back."""
    found: dict[str, Any] = json.loads(kept) if kept else {}
    return found


def _lower(one: int, other: int) -> int:
    """RabbitMQ's -1 is no limit."""
    limits = [each for each in (one, other) if each >= 0]
    return min(limits, default=-1)
