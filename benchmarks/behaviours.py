"""Queues of each type and with each behaviour, by name: what one costs beside a plain queue, where it changes nothing.

Nothing is dropped, expires or waits: limits are out of reach, so that all that is published is consumed.
"""

from __future__ import annotations

from benchmarks.load import Load
from benchmarks.properties import properties, table
from benchmarks.stream import FRESH, PLAIN, Stream
from benchmarks.wire import NO_TABLE

FAR = 10_000_000
"""Messages, or milliseconds, or bytes: a limit that no run reaches."""
_FEW = 4
_VALUES = 100


def _valued(number: int) -> bytes:
    return properties(headers=table({"colour": f"{number % _VALUES:02}"}))


def _another(_number: int) -> bytes:
    return properties(headers=table({"order": f"{FRESH:010}"}))


def _with(**arguments: str | int) -> Stream:
    """Messages that are alike, through a queue with such arguments."""
    return Stream(arguments=table({f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}))


_STREAMS: dict[str, tuple[str, Stream]] = {
    "plain": ("plain", PLAIN),
    "max-priority": (
        "priority: 10 levels, in turn",
        Stream(
            properties=lambda n: properties(priority=n % 10), arguments=table({"x-max-priority": 9}), ordered=False
        ),
    ),
    "sort-key": (
        f"sorted: {_VALUES} keys in turn",
        Stream(properties=_valued, arguments=table({"qpid.queue_sort_key": "colour"}), ordered=False),
    ),
    "last-value": (
        "last value: each key another",
        Stream(fresh=True, properties=_another, arguments=table({"qpid.last_value_queue_key": "order"})),
    ),
    "drop-head": ("a limit, drop-head", _with(max_length=FAR)),
    "reject-publish": ("a limit, reject-publish", _with(max_length=FAR, overflow="reject-publish")),
    "ring": ("a limit, ring", _with(max_length=FAR, overflow="ring")),
    "flow-control": ("a limit, producer-flow-control", _with(max_length=FAR, overflow="producer-flow-control")),
    "message-ttl": ("a time to live of the queue", _with(message_ttl=FAR)),
    "own-ttl": (
        "a time to live of each message, 50 in turn",
        Stream(properties=lambda n: properties(expiration=str(FAR + n % 50))),
    ),
    "delivery-limit": ("a limit of attempts", _with(delivery_limit=3)),
    "retry": ("delayed retry", _with(delayed_retry_type="all", delayed_retry_min=100)),
    "single-active": (
        f"single active consumer, of {_FEW}",
        Stream(arguments=table({"x-single-active-consumer": True}), consumers=[NO_TABLE] * _FEW),
    ),
    "live-consumers": (
        f"2 live consumers, of {_FEW}",
        Stream(arguments=table({"maximumLiveConsumers": 2}), consumers=[NO_TABLE] * _FEW, ordered=False),
    ),
    "consumer-priority": (
        "consumers with two priorities",
        Stream(consumers=[table({"x-priority": n}) for n in (1, 2)], ordered=False),
    ),
    "consumer-timeout": ("a timeout of deliveries", _with(consumer_timeout=FAR)),
    "standard-groups": (
        f"{_VALUES} standard groups in turn, {_FEW} consumers",
        Stream(
            properties=_valued,
            arguments=table({"qpid.group_header_key": "colour"}),
            consumers=[NO_TABLE] * _FEW,
            ordered=False,
        ),
    ),
    "shared-groups": (
        f"{_VALUES} shared groups in turn, {_FEW} consumers",
        Stream(
            properties=_valued,
            arguments=table({"qpid.group_header_key": "colour", "qpid.shared_msg_group": "1"}),
            consumers=[NO_TABLE] * _FEW,
            ordered=False,
        ),
    ),
    "default-filter": (
        "a default filter that takes all",
        Stream(
            properties=_valued,
            arguments=table({"qpid.default_filters": '{"f": {"x-filter-jms-selector": ["colour <> \'x\'"]}}'}),
        ),
    ),
    "no-local": ("no-local", Stream(arguments=table({"noLocal": True}))),
    "hold": ("hold on publish, nothing delayed", Stream(arguments=table({"holdOnPublishEnabled": True}))),
    "once": (
        "de-duplication, each id another",
        Stream(
            fresh=True,
            properties=lambda _: properties(message_id=f"order-{FRESH:010}"),
            arguments=table({"x-message-deduplication": True}),
        ),
    ),
    "without-once": (
        "the same without de-duplication",
        Stream(fresh=True, properties=lambda _: properties(message_id=f"order-{FRESH:010}")),
    ),
}  # fmt: skip

BEHAVIOURS: dict[str, tuple[str, Load]] = {
    f"queue-{name}": (title, Load(confirms=True, acks=True, stream=stream))
    for name, (title, stream) in _STREAMS.items()
}
"""With confirms and acknowledgements, as `acked` of the scenarios."""
