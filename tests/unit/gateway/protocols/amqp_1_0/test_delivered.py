"""Messages of another protocol, as a client of AMQP 1.0 gets them (part 3, section 3.2)."""

from __future__ import annotations

import pytest

from services.common.message.amqp_1_0.format import FORMAT
from services.common.message.facts import Facts
from services.gateway.protocols.amqp_1_0.delivered import delivered

_FACTS = Facts("/", "", "q", "amqp-0-9")
_TIMESTAMP = b"\x00\x40"  # the flags of a message of 0-9-1 that says when it was made, and nothing else


@pytest.mark.parametrize(("seconds", "moment"), [(5, 5000), (1 << 63, None), ((1 << 64) - 1, None)])
def test_when_it_was_made(seconds: int, moment: int | None) -> None:
    """In milliseconds (1.6.17); for what is later than they can say there is no time, and the message comes."""
    properties, _ = delivered(_FACTS, _TIMESTAMP + seconds.to_bytes(8, "big"), b"body", attempts=0)
    assert FORMAT.timestamp_ms(properties) == moment
