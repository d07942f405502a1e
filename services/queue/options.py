"""What a queue's definition says, read once: limits, expiry, dead-lettering. The arguments are RabbitMQ's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.common.message import LONGEST_NAME


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """`None` is no limit. `queue_id`, `name`, `virtual_host` and `partition` say which queue it is."""

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
    unused_ms: int | None = None
    max_priority: int = 0
    single_active: bool = False
    delivery_limit: int | None = None
    dead_letter_exchange: str | None = None
    dead_letter_key: str | None = None

    @property
    def limited(self) -> bool:
        """Whether ready messages may become too many."""
        return self.max_length is not None or self.max_bytes is not None


def read_options(
    queue_id: int,
    virtual_host: str,
    name: str,
    partition: int,
    arguments: Mapping[str, Any],
    *,
    durable: bool = False,
    auto_delete: bool = False,
) -> QueueOptions:
    """The options of a queue whose arguments the router has checked."""
    limit = arguments.get("x-delivery-limit")
    return QueueOptions(
        queue_id,
        virtual_host,
        name,
        partition,
        durable=durable,
        auto_delete=auto_delete,
        overflow=arguments.get("x-overflow", "drop-head"),
        max_length=arguments.get("x-max-length"),
        max_bytes=arguments.get("x-max-length-bytes"),
        ttl_ms=arguments.get("x-message-ttl"),
        unused_ms=arguments.get("x-expires"),
        max_priority=arguments.get("x-max-priority", 0),
        single_active=bool(arguments.get("x-single-active-consumer", False)),
        delivery_limit=None if limit is None or limit < 0 else limit,
        dead_letter_exchange=arguments.get("x-dead-letter-exchange"),
        dead_letter_key=_written(arguments.get("x-dead-letter-routing-key")),
    )


def _written(key: str | None) -> str | None:
    """A key that no consumer could be told, from before such were refused, is none: letters keep the one they have."""
    return key if key is None or len(key.encode()) <= LONGEST_NAME else None
