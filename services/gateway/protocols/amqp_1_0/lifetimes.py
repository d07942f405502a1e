"""What a link says of a node that it makes: arguments, and until when it is there (part 3, 3.5.10 to 3.5.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.common.message.amqp_1_0 import neutral
from services.common.message.amqp_1_0 import values as v
from services.common.topology.life import Scope, Unused
from services.gateway.protocols.amqp_1_0.conditions import InvalidField

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.common.message.amqp_1_0.composite import Fields
    from services.gateway.protocols.amqp_1_0.termini import Source, Target

_POLICY: Final = v.Symbol("lifetime-policy")
_MODES: Final = v.Symbol("supported-dist-modes")
_EXCLUSIVE: Final = v.Symbol("temporary-queue")  # a capability, by which clients of JMS ask for one of their own
_LIFETIMES: Final[Mapping[object, str]] = {
    v.ULong(0x2B): Scope.LINK,
    v.Symbol("amqp:delete-on-close:list"): Scope.LINK,
    v.ULong(0x2C): Unused.NO_LINKS,
    v.Symbol("amqp:delete-on-no-links:list"): Unused.NO_LINKS,
    v.ULong(0x2D): Unused.NO_MESSAGES,
    v.Symbol("amqp:delete-on-no-messages:list"): Unused.NO_MESSAGES,
    v.ULong(0x2E): Unused.NO_LINKS_OR_MESSAGES,
    v.Symbol("amqp:delete-on-no-links-or-messages:list"): Unused.NO_LINKS_OR_MESSAGES,
}
ON_CLOSE: Final = str(Scope.LINK)


def lifetime_of(properties: Fields | None) -> str:
    """What the peer asks for, in the topology's words; "" where it does not. Raises InvalidField."""
    if not properties or (policy := properties.get(_POLICY)) is None:
        return ""
    descriptor = policy.descriptor if isinstance(policy, v.Described) else None
    lifetime = _LIFETIMES.get(descriptor) if isinstance(descriptor, v.ULong | v.Symbol) else None
    if lifetime is None:
        raise InvalidField("lifetime-policy is none of delete-on-close, -no-links, -no-messages, -no-links-or-messages")
    return str(lifetime)


def arguments_of(properties: Fields | None) -> dict[str, Any]:
    """What else the peer says: arguments of a queue, as Broker-J takes them. Raises InvalidField."""
    if not properties:
        return {}
    said = neutral.plain_map({name: its for name, its in properties.items() if name not in (_POLICY, _MODES)})
    try:
        field_table.encode(said)
    except SyntaxFault as fault:
        raise InvalidField(f"properties of a dynamic node that no queue can have: {fault.text}") from None
    return said


def is_exclusive(end: Source | Target, lifetime: str) -> bool:
    """Whether its connection alone may receive from it: not where it may outlive that, unless the peer says so."""
    return lifetime in ("", ON_CLOSE) or _EXCLUSIVE in (end.capabilities or ())
