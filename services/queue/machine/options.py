"""What a queue's definition says, read once: limits, expiry, dead-lettering (`services/common/arguments`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from services.common.arguments import policies
from services.common.arguments import queue as argument
from services.common.arguments.argument import Argument
from services.common.arguments.broker_j import FLOW_CONTROL, NO_OVERFLOW, RING
from services.common.arguments.reading import said
from services.common.topology.life import Unused
from services.common.topology.slots import SlotId

_TAKE_ALL = frozenset({NO_OVERFLOW, FLOW_CONTROL})
__all__ = ["RING", "QueueOptions", "read_options"]
PRIORITY, SORTED, LAST_VALUE = "priority", "sorted", "last-value"


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """`None` is no limit; `lowest_priority` and those below are one level.

    `queue_id`, `name`, `virtual_host` and `partition` say which queue it is. `unused`: when one goes that a link has
    made; `kept`: that link is there.
    """

    queue_id: SlotId
    virtual_host: str
    name: str
    partition: int
    durable: bool = False
    auto_delete: bool = False
    unused: Unused = Unused.STAYS
    kept: bool = False
    overflow: str = "drop-head"
    max_length: int | None = None
    max_bytes: int | None = None
    resume_bytes: int | None = None
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
    few_live: int = 0
    delivery_limit: int | None = None
    retry: str = "disabled"
    retry_min_ms: int = 0
    retry_max_ms: int | None = None
    consumer_timeout_ms: int = 0
    once: bool = False
    once_most: int = 0
    once_ms: int = 0
    dead_letter_exchange: str | None = None
    dead_letter_key: str | None = None
    dead_letter_strategy: str = ""
    expiry: str = argument.ROUTE_TO_ALTERNATE

    @property
    def limited(self) -> bool:
        """Whether ready messages may become too many."""
        return self.overflow not in _TAKE_ALL and (self.max_length is not None or self.max_bytes is not None)

    @property
    def sets_aside(self) -> bool:
        """Whether some of its messages may not be delivered yet."""
        return self.holds or (self.retry_min_ms > 0 and self.retry != argument.RETRY.default)

    @property
    def keys(self) -> frozenset[str]:
        """Headers by which the queue goes: what they say is the publisher's."""
        return frozenset(key for key in (self.sort_key, self.last_value_key, self.group_key) if key)

    @property
    def drops_expired(self) -> bool:
        """Whether what expires is no dead letter."""
        return self.expiry == argument.DELETE

    @property
    def keeps_unroutable(self) -> bool:
        """Whether dead letters for which there is no way wait for one; as in RabbitMQ, of what refuses when full."""
        return self.dead_letter_strategy == argument.AT_LEAST_ONCE and self.overflow == "reject-publish"

    @property
    def live_consumers(self) -> int:
        """How many consumers at most are given messages while the others wait; 0: all are."""
        return 1 if self.single_active else self.few_live

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


_SAID_BY: Final[Mapping[str, Argument[Any]]] = {
    "overflow": argument.OVERFLOW,
    "max_length": argument.MAX_LENGTH,
    "max_bytes": argument.MAX_LENGTH_BYTES,
    "resume_bytes": argument.RESUME_BYTES,
    "ttl_ms": argument.MESSAGE_TTL,
    "least_ttl_ms": argument.LEAST_TTL,
    "unused_ms": argument.EXPIRES,
    "max_priority": argument.MAX_PRIORITY,
    "lowest_priority": argument.LOWEST_PRIORITY,
    "sort_key": argument.SORT_KEY,
    "last_value_key": argument.LAST_VALUE_KEY,
    "groups": argument.GROUP_TYPE,
    "group_key": argument.GROUP_KEY,
    "default_group": argument.DEFAULT_GROUP,
    "most_groups": argument.MOST_GROUPS,
    "nondestructive": argument.NONDESTRUCTIVE,
    "holds": argument.HOLDS,
    "default_selector": argument.DEFAULT_FILTERS,
    "single_active": argument.SINGLE_ACTIVE,
    "few_live": argument.LIVE_CONSUMERS,
    "delivery_limit": argument.DELIVERY_LIMIT,
    "retry": argument.RETRY,
    "retry_min_ms": argument.RETRY_LEAST,
    "retry_max_ms": argument.RETRY_MOST,
    "once": argument.ONCE,
    "once_most": argument.ONCE_MOST,
    "once_ms": argument.ONCE_MS,
    "dead_letter_exchange": argument.DEAD_LETTER_EXCHANGE,
    "dead_letter_key": argument.DEAD_LETTER_KEY,
    "dead_letter_strategy": argument.DEAD_LETTER_STRATEGY,
    "expiry": argument.EXPIRY,
}


def read_options(
    queue_id: SlotId,
    virtual_host: str,
    name: str,
    partition: int,
    table: Mapping[str, Any],
    policy: policies.Definition = MappingProxyType({}),
    *,
    durable: bool = False,
    auto_delete: bool = False,
    unused: str = "",
    kept: bool = False,
) -> QueueOptions:
    """The options of a queue whose arguments, and what its policies say, the router has checked."""
    found = policies.effective(said(table), policy)
    return QueueOptions(
        queue_id,
        virtual_host,
        name,
        partition,
        durable=durable,
        auto_delete=auto_delete,
        unused=Unused(unused),
        kept=kept,
        consumer_timeout_ms=argument.CONSUMER_TIMEOUT.of(found) or 0,
        **{field: its.of(found) for field, its in _SAID_BY.items()},
    )
