"""connection.start (section 1.4.2.1): what every client is told first, and all alike: it is written once."""

from __future__ import annotations

import platform
from functools import lru_cache
from typing import Final

from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.compression import PROPERTY as COMPRESSION
from services.gateway.protocols.amqp_0_9.methods import connection
from services.gateway.protocols.amqp_0_9.versions import VERSIONS

_CAPABILITIES: Final = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)
_LOCALES: Final = b"en_US"


@lru_cache(maxsize=64)
def start_frame(header: bytes, mechanisms: tuple[str, ...], product: str, release: str, compresses: bool) -> bytes:
    """The frame for clients of the version with that header, which are offered these mechanisms."""
    version = next(each for each in VERSIONS if each.header == header)
    properties = {
        "product": product,
        "version": release,
        "platform": f"Python {platform.python_version()}",
        "capabilities": dict.fromkeys(_CAPABILITIES, True),
        COMPRESSION: str(compresses).lower(),
    }
    start = connection.Start(version.major, version.minor, properties, " ".join(mechanisms).encode(), _LOCALES)
    return frames.frame(frames.METHOD, 0, version.encode(start))
