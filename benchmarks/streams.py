"""The streams whose messages are not alike, by name: as in real traffic, where messages differ."""

from __future__ import annotations

from benchmarks.load import Load
from benchmarks.properties import properties, table
from benchmarks.stream import FRESH, Stream
from benchmarks.wire import NO_TABLE

KEYS = 100
EXPIRATIONS = 50
PRIORITIES = 10
HEADER_BINDINGS = 1000
GROUP_CONSUMERS = 10
CHANNELS = 16


_TRACE = f"00-{FRESH:032}-{FRESH:016}-01"


def _key(number: int) -> str:
    return f"key-{number % KEYS:02}"


def _topic(number: int) -> str:
    return f"devices.{number % KEYS:02}.temperature"


def _coloured(number: int) -> bytes:
    return properties(headers=table({"colour": f"{number % KEYS:02}"}))


def _identified(_number: int) -> bytes:
    return properties(message_id=f"order-{FRESH:010}")


def _varied(number: int) -> bytes:
    """Headers whose lengths are hardly ever those of the message before, though they come to the same."""
    user, city = 1 + number * 7 % 29, 1 + number * 11 % 23
    said = {"user": "u" * user, "city": "c" * city, "note": "n" * (60 - user - city)}
    return properties(headers=table({"order": f"{FRESH:010}", **said}), message_id=f"order-{FRESH:010}")


def _selecting(selector: str) -> bytes:
    return table({"x-filter-jms-selector": selector})


def _alternating(number: int) -> bytes:
    return properties(
        persistent=True,
        priority=number % PRIORITIES,
        headers=table({"order": f"{FRESH:010}", "colour": f"{number % KEYS:02}"}),
        message_id=f"order-{FRESH:010}",
    )


ALTERNATING = Load(
    confirms=True,
    acks=True,
    stream=Stream(
        "direct",
        lambda _: [(_key(number), NO_TABLE) for number in range(KEYS)],
        _key,
        _alternating,
        durable=True,
        fresh=True,
    ),
)
"""As real traffic that is kept: no message is like the one before it in anything but its size."""

STREAMS: dict[str, tuple[str, Load]] = {
    "ids": (
        "message ids, each another",
        Load(stream=Stream(fresh=True, properties=_identified)),
    ),
    "channels": (
        f"the same over {CHANNELS} channels of a connection in turn, confirms",
        Load(confirms=True, channels=CHANNELS, stream=Stream(fresh=True, properties=_identified, ordered=False)),
    ),
    "headers": (
        "a header, each another",
        Load(stream=Stream(fresh=True, properties=lambda _: properties(headers=table({"order": f"{FRESH:010}"})))),
    ),
    "headers-varied": (
        "four headers, of other lengths each time",
        Load(stream=Stream(fresh=True, properties=_varied)),
    ),
    "traceparent": (
        "a trace context, each another",
        Load(
            stream=Stream(
                fresh=True, properties=lambda _: properties(headers=table({"traceparent": _TRACE}))
            )
        ),
    ),
    "headers-exchange": (
        f"headers exchange, {HEADER_BINDINGS:,} bindings",
        Load(
            stream=Stream(
                "headers",
                lambda _: [("", table({"x-match": "all", "order": number})) for number in range(HEADER_BINDINGS)],
                key=lambda _: "",
                properties=lambda n: properties(headers=table({"order": n % KEYS})),
            )
        ),
    ),
    "persistence": (
        "persistent and transient in turn",
        Load(stream=Stream(durable=True, properties=lambda n: properties(persistent=n % 2 == 0))),
    ),
    "priorities": (
        "priorities 0 to 9 in turn",
        Load(
            stream=Stream(
                properties=lambda n: properties(priority=n % PRIORITIES),
                arguments=table({"x-max-priority": PRIORITIES}),
                ordered=False,
            )
        ),
    ),
    "expirations": (
        f"{EXPIRATIONS} expirations in turn",
        Load(stream=Stream(properties=lambda n: properties(expiration=str(3_600_000 + n % EXPIRATIONS)))),
    ),
    "expirations-new": (
        "expirations, each another",
        Load(stream=Stream(fresh=True, properties=lambda _: properties(expiration=f"{FRESH:010}"))),
    ),
    "keys": (
        f"{KEYS} keys in turn, direct exchange, one queue",
        Load(stream=Stream("direct", lambda _: [(_key(number), NO_TABLE) for number in range(KEYS)], _key)),
    ),
    "keys-100": (
        f"{KEYS} keys in turn, direct exchange, {KEYS} queues",
        Load(KEYS, together=True, stream=Stream("direct", lambda queue: [(_key(queue), NO_TABLE)], _key)),
    ),
    "topics": (
        f"{KEYS} keys in turn, topic exchange",
        Load(stream=Stream("topic", lambda _: [("devices.*.temperature", NO_TABLE)], _topic)),
    ),
    "topics-new": (
        "every key new, topic exchange",
        Load(
            stream=Stream(
                "topic", lambda _: [("devices.*.temperature", NO_TABLE)], lambda _: f"devices.{FRESH:010}.temperature",
                fresh=True,
            )
        ),
    ),
    "selectors": (
        f"{KEYS} consumers of one queue, each with a selector for one value",
        Load(stream=Stream(properties=_coloured, consumers=[_selecting(f"colour = '{n:02}'") for n in range(KEYS)])),
    ),
    "selectors-any": (
        f"{KEYS} consumers of one queue, each with another kind of selector",
        Load(stream=Stream(properties=_coloured, consumers=[_selecting(f"colour LIKE '{n:02}'") for n in range(KEYS)])),
    ),
    "groups": (
        f"{KEYS} message groups in turn, {GROUP_CONSUMERS} consumers",
        Load(
            stream=Stream(
                properties=_coloured,
                arguments=table({"qpid.group_header_key": "colour"}),
                consumers=[NO_TABLE] * GROUP_CONSUMERS,
            )
        ),
    ),
    "sorted": (
        f"a sorted queue, {KEYS} keys in turn",
        Load(stream=Stream(properties=_coloured, arguments=table({"qpid.queue_sort_key": "colour"}), ordered=False)),
    ),
    "small": ("bodies of 16 bytes", Load(size=16)),
    "64k": ("bodies of 64 KiB", Load(size=64 << 10)),
    "1m": ("bodies of 1 MB", Load(size=1_000_000)),
}  # fmt: skip
"""As in scenarios: no acknowledgements, one connection that publishes and one that consumes."""
