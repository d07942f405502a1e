"""What consumers and bindings of histories select: each selector, with what it means, written by hand; and what groups
go by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.simulation.history import Sent

SELECTOR: Final = "x-filter-jms-selector"
HOLDS: Final = "holdOnPublishEnabled"
RANK: Final = "rank"
"""The header by which queues sort, or keep the last: with SORTED, LAST_VALUE."""
SORTED: Final = "qpid.queue_sort_key"
LAST_VALUE: Final = "qpid.last_value_queue_key"
LEVELS: Final = "x-qpid-priorities"
TIMEOUT: Final = "x-consumer-timeout"
NO_LOCAL: Final = "noLocal"
NONDESTRUCTIVE: Final = "ensureNondestructiveConsumers"
LIVE: Final = "maximumLiveConsumers"
"""So many of a queue's consumers are given messages; of a single one, SINGLE says it."""
SINGLE: Final = "x-single-active-consumer"
HELD_BACK: Final[Mapping[str, object]] = {"qpid.policy_type": "PRODUCER_FLOW_CONTROL"}
"""Who publishes to such a queue is held back while more than MOST, or so many bytes, wait in it."""
MOST: Final = "qpid.max_count"
RING: Final[Mapping[str, object]] = {"x-overflow": "ring"}
"""Of more than it may have, such a queue drops what is oldest, though somebody holds it."""
ONCE: Final = "x-message-deduplication"
"""Such a queue takes one message of each KEY, a header."""
KEY: Final = "x-deduplication-header"
BYTES: Final = "x-max-length-bytes"
LEAST_TTL: Final = "minimumMessageTtl"
MOST_TTL: Final = "maximumMessageTtl"
MOST_ATTEMPTS: Final = "x-qpid-maximum-delivery-count"
DEFAULT_FILTERS: Final = "qpid.default_filters"
ALTERNATE: Final = "alternateBinding"
STRATEGY: Final = "x-dead-letter-strategy"
LATE: Final = "late"
"""The exchange for which dead letters of some queues wait."""
OWNER: Final = "qpid.exclusivity_policy"
LIFETIME: Final = "qpid.lifetime_policy"
SESSIONS: Final[Mapping[str, Mapping[str, str]]] = {
    OWNER: {OWNER: "SESSION"},
    LIFETIME: {OWNER: "CONNECTION", LIFETIME: "DELETE_ON_SESSION_END"},
}
"""What makes a queue a session's."""
GIVES_ALL: Final = frozenset(
    {
        HOLDS,
        *HELD_BACK,
        MOST,
        "x-qpid-capacity",
        "x-qpid-flow-resume-capacity",
        SORTED,
        LEVELS,
        TIMEOUT,
        "x-max-priority",
    }
    | {"x-delivery-limit", "x-dead-letter-exchange", "x-dead-letter-routing-key", ALTERNATE, "expiryPolicy"}
)
"""Arguments with which a queue gives all that it has to anybody, and nothing goes that nobody has had."""
COLOURS: Final = ("red", "green", "blue")
GROUPS: Final = (
    {"qpid.group_header_key": "colour"},
    {"qpid.group_header_key": "colour", "qpid.shared_msg_group": "1"},
)
CHOICES: Final[Mapping[str, Callable[[Sent], bool]]] = {
    "colour = 'red'": lambda sent: sent.headers.get("colour") == "red",
    "colour = 'green' AND JMSPriority < 5": lambda sent: sent.headers.get("colour") == "green" and sent.priority < 5,
    "colour <> 'red'": lambda sent: sent.headers.get("colour") in {"green", "blue"},
    "colour IS NULL OR colour = 'blue'": lambda sent: sent.headers.get("colour", "blue") == "blue",
    "JMSDeliveryMode = 'PERSISTENT'": lambda sent: sent.persistent,
    "colour LIKE 'x%'": lambda _: False,
}
BOUND: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "colour <> 'red'": lambda headers: headers.get("colour") in {"green", "blue"},
    "colour IS NULL OR colour IN ('red', 'blue')": lambda headers: headers.get("colour", "red") in {"red", "blue"},
    "NOT colour = 'blue'": lambda headers: headers.get("colour") in {"red", "green"},
}
"""What a binding with it passes on, by headers alone."""


def is_ring(table: Mapping[str, object]) -> bool:
    """Whether arguments say that a queue is a RING."""
    return table.items() >= RING.items()
