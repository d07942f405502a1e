"""Names that clients may not give, and how errors speak of things. Texts are those that RabbitMQ's clients know."""

from __future__ import annotations

from services.common.errors import AccessRefused, SyntaxFault
from services.common.message import LONGEST_NAME
from services.common.topology.direct_reply import is_behind
from services.common.topology.predeclared import DEFAULT_EXCHANGE

_RESERVED = "amq."
MADE = "amq.gen-"
"""How names begin that a router makes, and RabbitMQ."""
_MANAGEMENT = "$management"  # the address of the management node: who had a queue of that name would have its requests


def called(kind: str, name: str, virtual_host: str) -> str:
    """`queue 'x' in vhost '/'`."""
    return f"{kind} '{name}' in vhost '{virtual_host}'"


def check_new(kind: str, name: str, *, exclusive: bool = False, restored: bool = False) -> None:
    """Raises AccessRefused for a reserved name, SyntaxFault for one that does not fit."""
    may = (exclusive and is_behind(name)) or (restored and name.startswith(MADE))
    if name.startswith(_RESERVED) and not may:
        raise AccessRefused(f"{kind} name '{name}' contains reserved prefix '{_RESERVED}*'")
    if name == _MANAGEMENT and kind == "queue":
        raise AccessRefused(f"{kind} name '{name}' is that of the management node")
    if not fits(name):
        raise SyntaxFault(f"{kind} name is longer than {LONGEST_NAME} bytes")


def fits(name: str) -> bool:
    """Whether the wire has room for a name, or a routing key."""
    return len(name.encode()) <= LONGEST_NAME


def check_not_default(exchange: str) -> None:
    """Raises AccessRefused: the default exchange is nobody's to change."""
    if exchange == DEFAULT_EXCHANGE:
        raise AccessRefused("operation not permitted on the default exchange")
