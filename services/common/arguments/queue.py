"""What can be said of a queue: a table, read beside RabbitMQ's documentation of queue arguments.

To add one: a row here, and its value in `services/queue/machine/options.py`, where the queue heeds it, not gateways.
Those that nothing reads have no effect here, and are checked all the same (`docs/differences.md`).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from services.common.arguments import filters
from services.common.arguments.argument import Argument
from services.common.arguments.checks import MS_AT_MOST, boolean, integer, key, name, one_of, text

CLASSIC: Final = "classic"
QUORUM: Final = "quorum"
DROP_HEAD: Final = "drop-head"
STANDARD_GROUPS: Final = "STANDARD"
SHARED_GROUPS: Final = "SHARED_GROUPS"
_DROPS: Final = {"x-overflow": DROP_HEAD}


def _limit(value: int) -> int | None:
    """RabbitMQ's -1 is no limit."""
    return None if value < 0 else value


CONSUMER_TIMEOUT: Final[Argument[int | None]] = Argument("x-consumer-timeout", integer(1, MS_AT_MOST), None)
DELETE: Final = "DELETE"
ROUTE_TO_ALTERNATE: Final = "ROUTE_TO_ALTERNATE"
EXPIRY: Final[Argument[str]] = Argument("expiryPolicy", one_of((DELETE, ROUTE_TO_ALTERNATE)), ROUTE_TO_ALTERNATE)
"""Whether what expires is a dead letter, where there is an exchange for them."""
DEAD_LETTER_EXCHANGE: Final[Argument[str | None]] = Argument(
    "x-dead-letter-exchange", name, None, implies={EXPIRY.name: ROUTE_TO_ALTERNATE}
)
DEAD_LETTER_KEY: Final[Argument[str | None]] = Argument("x-dead-letter-routing-key", name, None)
AT_LEAST_ONCE: Final = "at-least-once"
DEAD_LETTER_STRATEGY: Final[Argument[str]] = Argument(
    "x-dead-letter-strategy", one_of(("at-most-once", AT_LEAST_ONCE)), "at-most-once"
)
"""What becomes of dead letters that go nowhere: they are dropped, or wait until there is a way."""
DELIVERY_LIMIT: Final[Argument[int | None]] = Argument("x-delivery-limit", integer(-1), None, _limit)
EXPIRES: Final[Argument[int | None]] = Argument("x-expires", integer(1, MS_AT_MOST), None)
MAX_LENGTH: Final[Argument[int | None]] = Argument("x-max-length", integer(0), None, implies=_DROPS)
MAX_LENGTH_BYTES: Final[Argument[int | None]] = Argument("x-max-length-bytes", integer(0), None, implies=_DROPS)
MAX_PRIORITY: Final[Argument[int]] = Argument("x-max-priority", integer(0, 255), 0)
MESSAGE_TTL: Final[Argument[int | None]] = Argument("x-message-ttl", integer(0, MS_AT_MOST), None)
OVERFLOW: Final[Argument[str]] = Argument("x-overflow", text, DROP_HEAD)
QUEUE_TYPE: Final[Argument[str]] = Argument("x-queue-type", text, CLASSIC)
SINGLE_ACTIVE: Final[Argument[bool]] = Argument("x-single-active-consumer", boolean, False)

RETRY: Final[Argument[str]] = Argument(
    "x-delayed-retry-type", one_of(("all", "failed", "returned", "disabled")), "disabled"
)
"""What waits that comes back: for the least by the attempts that it has had, and no longer than the most."""
RETRY_LEAST: Final[Argument[int]] = Argument("x-delayed-retry-min", integer(1, MS_AT_MOST), 0)
RETRY_MOST: Final[Argument[int | None]] = Argument("x-delayed-retry-max", integer(1, MS_AT_MOST), None)
LIVE_CONSUMERS: Final[Argument[int]] = Argument("x-qpid-live-consumers", integer(2, 1 << 16), 0)
"""So many are given messages, the others wait; of a single one, the argument before says it."""
RESUME_BYTES: Final[Argument[int | None]] = Argument("x-flow-resume-bytes", integer(0), None)
"""Where publishers are held back from a queue that has too much, they go on when no more than that is in it."""
LEAST_TTL: Final[Argument[int]] = Argument("minimumMessageTtl", integer(0, MS_AT_MOST), 0)
"""Of messages that have a time to live of their own: a shorter one is taken for it."""
LOWEST_PRIORITY: Final[Argument[int]] = Argument("x-qpid-lowest-priority", integer(0, 9), 0)
"""Priorities up to it are one level: Broker-J's queues with fewer than ten levels tell the middle ones apart."""
SORT_KEY: Final[Argument[str | None]] = Argument("qpid.queue_sort_key", key, None)
LAST_VALUE_KEY: Final[Argument[str | None]] = Argument("qpid.last_value_queue_key", key, None)
GROUP_TYPE: Final[Argument[str]] = Argument(
    "messageGroupType", one_of(("NONE", STANDARD_GROUPS, SHARED_GROUPS)), "NONE"
)
"""Of messages with one group: to one consumer as long as he is there, or only while he holds some of them."""
GROUP_KEY: Final[Argument[str | None]] = Argument("messageGroupKeyOverride", key, None)
DEFAULT_GROUP: Final[Argument[str]] = Argument("messageGroupDefaultGroup", text, "qpid.no-group")
MOST_GROUPS: Final[Argument[int]] = Argument("maximumDistinctGroups", integer(1, 1 << 16), 255)
NONDESTRUCTIVE: Final[Argument[bool]] = Argument("ensureNondestructiveConsumers", boolean, False)
"""All its consumers browse."""
HOLDS: Final[Argument[bool]] = Argument("holdOnPublishEnabled", boolean, False)
"""It keeps messages that say when they may be delivered until then."""
DEFAULT_FILTERS: Final[Argument[str]] = Argument(
    "defaultFilters", filters.wrong, "", filters.selector_of, check_new=filters.costly
)
"""What consumers get that do not say it themselves: by name, a kind of filter and its arguments. Read: a selector."""
DEFAULT_REPLAY: Final[Argument[int | None]] = Argument(DEFAULT_FILTERS.name, filters.wrong, None, filters.replay_of)
"""The same, read as the replay period that they say, in seconds."""
NO_LOCAL: Final[Argument[bool]] = Argument("noLocal", boolean, False)
"""None of its consumers is given what its own connection publishes."""
ONCE: Final[Argument[bool]] = Argument("x-message-deduplication", boolean, False)
"""What comes with the key of a message that came lately is dropped: a header's, or else the message id."""
MOST_KEYS: Final = 100_000
"""A queue's owner reads, and forgets, all of them in one turn: for a million that takes longer than its lease."""
ONCE_MOST: Final[Argument[int]] = Argument(
    "x-cache-size", integer(1), 20_000, partial(min, MOST_KEYS), check_new=integer(1, MOST_KEYS)
)
ONCE_MS: Final[Argument[int]] = Argument("x-cache-ttl", integer(1, MS_AT_MOST), 600_000)
"""How many keys are known at most, and each for how long."""
PERMANENT: Final = "PERMANENT"
OWNERS: Final = ("NONE", "CONNECTION", "SESSION", "LINK", "CONTAINER", "PRINCIPAL", "PRINCIPAL_CONTAINER")
EXCLUSIVITY: Final[Argument[str | None]] = Argument("exclusive", one_of(OWNERS), None)
"""Whose it is alone; both in Broker-J's words (`life.py`)."""
LIFETIMES: Final = (
    PERMANENT,
    "DELETE_ON_CONNECTION_CLOSE",
    "DELETE_ON_SESSION_END",
    "DELETE_ON_NO_OUTBOUND_LINKS",
    "DELETE_ON_NO_LINKS",
)
LIFETIME: Final[Argument[str | None]] = Argument("lifetimePolicy", one_of(LIFETIMES), None)
ORDERS: Final = (MAX_PRIORITY, SORT_KEY, LAST_VALUE_KEY)
"""Each says what is next in its own way: one queue has one of them."""

ARGUMENTS: Final[tuple[Argument[Any], ...]] = (
    CONSUMER_TIMEOUT,
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_KEY,
    DEAD_LETTER_STRATEGY,
    DELIVERY_LIMIT,
    RETRY,
    RETRY_LEAST,
    RETRY_MOST,
    EXPIRES,
    EXPIRY,
    Argument("x-max-in-memory-bytes", integer(0), None),
    Argument("x-max-in-memory-length", integer(0), None),
    MAX_LENGTH,
    MAX_LENGTH_BYTES,
    MAX_PRIORITY,
    RESUME_BYTES,
    MESSAGE_TTL,
    LEAST_TTL,
    Argument("x-queue-leader-locator", text, None),
    Argument("x-queue-master-locator", text, None),
    Argument("x-queue-mode", one_of(("default", "lazy")), None),
    Argument("x-queue-version", integer(1, 2), None),
    Argument("x-quorum-initial-group-size", integer(1), None),
    SINGLE_ACTIVE,
    LIVE_CONSUMERS,
    LOWEST_PRIORITY,
    SORT_KEY,
    LAST_VALUE_KEY,
    GROUP_TYPE,
    GROUP_KEY,
    DEFAULT_GROUP,
    MOST_GROUPS,
    NONDESTRUCTIVE,
    HOLDS,
    DEFAULT_FILTERS,
    NO_LOCAL,
    ONCE,
    ONCE_MOST,
    ONCE_MS,
    EXCLUSIVITY,
    LIFETIME,
    OVERFLOW,
    QUEUE_TYPE,
)
