"""Filters of a source (part 3, section 3.5.8): the registered ones that Broker-J has, as what they say to the broker.

descriptor              also                                          value
0x0000468C:0x00000000   apache.org:legacy-amqp-direct-binding:string  a routing key, of an exchange
0x0000468C:0x00000001   apache.org:legacy-amqp-topic-binding:string   a pattern of routing keys, of an exchange
0x0000468C:0x00000003   apache.org:no-local-filter:list                (any) not what the link's connection sends
0x0000468C:0x00000004   apache.org:selector-filter:string             a selector of JMS
apache.org:jms-selector-filter:string         (its former name)
x-qpid-replay-period                          not what came more seconds ago; Broker-J has it of 0-x, by this name
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from services.common.arguments.filters import REPLAY, seconds
from services.common.errors import NotImplementedHere
from services.common.message.amqp_1_0.values import Described
from services.gateway.protocols.amqp_1_0.conditions import InvalidField

_BINDING, _NO_LOCAL, _SELECTOR, _REPLAY = "binding", "no_local", "selector", "replay"
_KINDS: Final[Mapping[int | str, str]] = {
    0x0000468C_00000000: _BINDING,
    "apache.org:legacy-amqp-direct-binding:string": _BINDING,
    0x0000468C_00000001: _BINDING,
    "apache.org:legacy-amqp-topic-binding:string": _BINDING,
    0x0000468C_00000003: _NO_LOCAL,
    "apache.org:no-local-filter:list": _NO_LOCAL,
    0x0000468C_00000004: _SELECTOR,
    "apache.org:selector-filter:string": _SELECTOR,
    "apache.org:jms-selector-filter:string": _SELECTOR,
    REPLAY: _REPLAY,
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What they say: which messages a consumer wants, and by which key an exchange's are its; None: nothing said.

    With `no_local`, not what its own connection sends; `replay`: in seconds, not what came before that.
    """

    selector: str | None = None
    binding: str | None = None
    no_local: bool | None = None
    replay: int | None = None


def filters_of(table: Mapping[Any, Any] | None) -> Filters:
    """Raises NotImplementedHere for a filter that is not offered, InvalidField for one that says nothing valid.

    Whether text is a selector the broker says: to compile one takes time, and others have their turns meanwhile.
    """
    found = Filters()
    for name, given in (table or {}).items():
        kind, value = _read(name, given)
        if getattr(found, kind) is not None:
            raise InvalidField(f"filter {name}: there is another {kind}")
        found = replace(found, **{kind: value})
    return found


def _read(name: object, given: object) -> tuple[str, Any]:
    descriptor = given.descriptor if isinstance(given, Described) else name
    kind = _KINDS.get(int(descriptor) if isinstance(descriptor, int) else str(descriptor))
    if kind is None:
        raise NotImplementedHere(f"filter {name}: there is no {descriptor} here")
    if kind == _NO_LOCAL:
        return kind, True
    value = given.value if isinstance(given, Described) else given
    if kind == _REPLAY:
        return kind, _seconds(str(name), value)
    if not isinstance(value, str):
        raise InvalidField(f"filter {name}: must be text, not {value!r}")
    return kind, str(value)


def _seconds(name: str, value: object) -> int:
    try:
        return seconds(value)
    except (TypeError, ValueError) as error:
        raise InvalidField(f"filter {name}: {error}") from None
