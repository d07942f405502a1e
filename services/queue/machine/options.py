"""What a queue's definition says, read once: limits, expiry, dead-lettering (`services/common/arguments`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.common.arguments import queue as argument
from services.common.arguments.broker_j import NO_OVERFLOW
from services.common.arguments.reading import said

PRIORITY, SORTED, LAST_VALUE = "priority", "sorted", "last-value"


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """`None` is no limit; `lowest_priority` and those below are one level.

    `queue_id`, `name`, `virtual_host` and `partition` say which queue it is.
    """

    queue_id: int
    virtual_host: str
    name: str
    partition: int
    durable: bool = False
    auto_delete: bool = False
    overflow: str = "drop-head"
    max_length: int | None = None
    max_bytes: int | None = None
    ttl_ms: int | None = None
    least_ttl_ms: int = 0
    unused_ms: int | None = None
    max_priority: int = 0
    lowest_priority: int = 0
    sort_key: str | None = None
    last_value_key: str | None = None
    groups: str = "NONE"
    group_key: str | None = None
    default_group: str = ""
    most_groups: int = 0
    nondestructive: bool = False
    holds: bool = False
    default_selector: str = ""
    single_active: bool = False
    delivery_limit: int | None = None
    consumer_timeout_ms: int = 0
    dead_letter_exchange: str | None = None
    dead_letter_key: str | None = None

    @property
    def limited(self) -> bool:
        """Whether ready messages may become too many."""
        return self.overflow != NO_OVERFLOW and (self.max_length is not None or self.max_bytes is not None)

    def lifetime(self, own_ms: int | None) -> int | None:
        """For how long a message may wait that says this itself; None: for ever."""
        if own_ms is None:
            return self.ttl_ms
        own_ms = max(own_ms, self.least_ttl_ms)
        return own_ms if self.ttl_ms is None else min(own_ms, self.ttl_ms)

    @property
    def type(self) -> str | None:
        """The queue type that the arguments ask for; None: it is as declared."""
        asked = {PRIORITY: self.max_priority, SORTED: self.sort_key, LAST_VALUE: self.last_value_key}
        return next((kind for kind, value in asked.items() if value), None)


def read_options(
    queue_id: int,
    virtual_host: str,
    name: str,
    partition: int,
    table: Mapping[str, Any],
    *,
    durable: bool = False,
    auto_delete: bool = False,
) -> QueueOptions:
    """The options of a queue whose arguments the router has checked."""
    found = said(table)
    return QueueOptions(
        queue_id,
        virtual_host,
        name,
        partition,
        durable=durable,
        auto_delete=auto_delete,
        overflow=argument.OVERFLOW.of(found),
        max_length=argument.MAX_LENGTH.of(found),
        max_bytes=argument.MAX_LENGTH_BYTES.of(found),
        ttl_ms=argument.MESSAGE_TTL.of(found),
        least_ttl_ms=argument.LEAST_TTL.of(found),
        unused_ms=argument.EXPIRES.of(found),
        max_priority=argument.MAX_PRIORITY.of(found),
        lowest_priority=argument.LOWEST_PRIORITY.of(found),
        sort_key=argument.SORT_KEY.of(found),
        last_value_key=argument.LAST_VALUE_KEY.of(found),
        groups=argument.GROUP_TYPE.of(found),
        group_key=argument.GROUP_KEY.of(found),
        default_group=argument.DEFAULT_GROUP.of(found),
        most_groups=argument.MOST_GROUPS.of(found),
        nondestructive=argument.NONDESTRUCTIVE.of(found),
        holds=argument.HOLDS.of(found),
        default_selector=argument.DEFAULT_FILTERS.of(found),
        single_active=argument.SINGLE_ACTIVE.of(found),
        delivery_limit=argument.DELIVERY_LIMIT.of(found),
        consumer_timeout_ms=argument.CONSUMER_TIMEOUT.of(found) or 0,
        dead_letter_exchange=argument.DEAD_LETTER_EXCHANGE.of(found),
        dead_letter_key=argument.DEAD_LETTER_KEY.of(found),
    )
