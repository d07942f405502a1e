"""Broker-J's names for what RabbitMQ has arguments for: on the wire of 0-x, and in its model, which it accepts too.

A table, read beside Broker-J's `QueueArgumentsConverter`. Each has Broker-J's own meaning: a depth without a policy
holds nobody up (its default policy is NONE), attempts are counted from the first, and an alternate exchange does not
get what expires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from services.common.arguments import filters, queue
from services.common.arguments.argument import Alias, Argument, Said
from services.common.arguments.checks import MS_AT_MOST, Check, integer, is_true, key, name, one_of, text, truth

NO_OVERFLOW: Final = "none"
FLOW_CONTROL: Final = "producer-flow-control"
RING: Final = "ring"
POLICIES: Final = {
    "NONE": NO_OVERFLOW,
    "RING": RING,
    "REJECT": "reject-publish",
    "PRODUCER_FLOW_CONTROL": FLOW_CONTROL,
    "REJECT_TO_ALTERNATE": "reject-publish-dlx",
}
"""Overflow policies; the last one is Hopline's own, RabbitMQ's reject-publish-dlx."""

_LAST_VALUE_KEY: Final = "qpid.LVQ_key"  # where nothing else is said
_MIDDLE: Final = 5  # of the ten priorities of JMS
_NOT_LIMITED: Final = {queue.OVERFLOW.name: NO_OVERFLOW}


def _number(argument: Argument[Any], *, none: int, more: int = 0) -> Callable[[int], Said]:
    """`none` says that there is no limit; Broker-J counts from `more`."""
    return lambda value: {} if value == none else {argument.name: value - more}


def _policy(value: str) -> Said:
    return {queue.OVERFLOW.name: POLICIES[value.upper()]}


def _is_policy(value: object) -> str | None:
    """In capitals or not, as Broker-J has it."""
    return one_of(tuple(POLICIES))(value.upper() if isinstance(value, str) else value)


def _resume(value: int) -> Said:
    """The policy that it is for is said with it."""
    return {queue.RESUME_BYTES.name: value, queue.OVERFLOW.name: FLOW_CONTROL}


def _levels(value: int) -> Said:
    """So many levels, of which the middle one is for the priority that messages have that say none."""
    lowest = max(0, _MIDDLE - (value + 1) // 2)
    return {queue.MAX_PRIORITY.name: value - 1} | ({queue.LOWEST_PRIORITY.name: lowest} if lowest else {})


def _live(value: int) -> Said:
    if value > 1:
        return {queue.LIVE_CONSUMERS.name: value}
    return {queue.SINGLE_ACTIVE.name: True} if value else {}


def _is_true(value: object) -> str | None:
    """Clients of Qpid say 1."""
    return None if value in (True, 1) else f"must be true, not {value!r}"


def _is_one(value: object) -> str | None:
    """Clients of Qpid say 1, as text or as a number."""
    return None if value in (1, "1") else f"must be 1, not {value!r}"


_NOTHING: Final[Said] = {}


def _both(
    names: tuple[str, str], check: Check, says: Callable[[Any], Said], implies: Said = _NOTHING
) -> tuple[Alias, Alias]:
    """On the wire, and in the model."""
    wire, model = names
    return Alias(wire, check, says, implies), Alias(model, check, says, implies)


ALIASES: Final = (
    *_both(
        ("qpid.max_count", "maximumQueueDepthMessages"),
        integer(-1),
        _number(queue.MAX_LENGTH, none=-1),
        implies=_NOT_LIMITED,
    ),
    *_both(
        ("qpid.max_size", "maximumQueueDepthBytes"),
        integer(-1),
        _number(queue.MAX_LENGTH_BYTES, none=-1),
        implies=_NOT_LIMITED,
    ),
    Alias(
        "alternateExchange",
        name,
        lambda value: {queue.DEAD_LETTER_EXCHANGE.name: value},
        implies={queue.EXPIRY.name: queue.DELETE},
    ),
    Alias("x-qpid-capacity", integer(0), _number(queue.MAX_LENGTH_BYTES, none=0), implies=_NOT_LIMITED),
    Alias("x-qpid-flow-resume-capacity", integer(0), _resume),
    *_both(("qpid.policy_type", "overflowPolicy"), _is_policy, _policy),
    *_both(
        ("x-qpid-maximum-delivery-count", "maximumDeliveryAttempts"),
        integer(0),
        _number(queue.DELIVERY_LIMIT, none=0, more=1),
    ),
    *_both(("x-qpid-priorities", "priorities"), integer(1, 256), _levels),
    Alias("sortKey", key, lambda value: {queue.SORT_KEY.name: value}),
    Alias("lvqKey", key, lambda value: {queue.LAST_VALUE_KEY.name: value}),
    Alias("qpid.last_value_queue", _is_true, lambda _: {}, implies={queue.LAST_VALUE_KEY.name: _LAST_VALUE_KEY}),
    Alias(
        "qpid.group_header_key",
        key,
        lambda value: {queue.GROUP_KEY.name: value},
        implies={queue.GROUP_TYPE.name: queue.STANDARD_GROUPS},
    ),
    Alias("qpid.shared_msg_group", _is_one, lambda _: {queue.GROUP_TYPE.name: queue.SHARED_GROUPS}),
    Alias("qpid.default-message-group", text, lambda value: {queue.DEFAULT_GROUP.name: value}),
    Alias("qpid.ensure_nondestructive_consumers", truth, lambda value: {queue.NONDESTRUCTIVE.name: is_true(value)}),
    Alias("no-local", truth, lambda value: {queue.NO_LOCAL.name: is_true(value)}),
    Alias(
        "qpid.default_filters",
        filters.wrong,
        lambda value: {queue.DEFAULT_FILTERS.name: value},
        check_new=filters.costly,
    ),
    Alias("qpid.exclusivity_policy", one_of(queue.OWNERS), lambda value: {queue.EXCLUSIVITY.name: value}),
    Alias("qpid.lifetime_policy", one_of(queue.LIFETIMES), lambda value: {queue.LIFETIME.name: value}),
    Alias("maximumMessageTtl", integer(0, MS_AT_MOST), _number(queue.MESSAGE_TTL, none=0)),
    Alias("maximumLiveConsumers", integer(0, 1 << 16), _live),
)
