"""What SASL frames say (part 5, section 5.3)."""

from __future__ import annotations

from typing import Final

from services.common.message.amqp_1_0.composite import Binary, Composite, String, Symbol, Symbols, UByte, composite

OK: Final = 0  # section 5.3.3.6, sasl-code
AUTH: Final = 1  # who it is was not proven
SYS: Final = 2  # a fault that is not the peer's


@composite(0x40, "sasl-mechanisms")
class Mechanisms(Composite):
    sasl_server_mechanisms: Symbols


@composite(0x41, "sasl-init")
class Init(Composite):
    mechanism: Symbol
    initial_response: Binary | None = None
    hostname: String | None = None


@composite(0x42, "sasl-challenge")
class Challenge(Composite):
    challenge: Binary


@composite(0x43, "sasl-response")
class Response(Composite):
    response: Binary


@composite(0x44, "sasl-outcome")
class Outcome(Composite):
    code: UByte
    additional_data: Binary | None = None
