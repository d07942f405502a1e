"""What every exchange type can do. Pure; one instance holds the bindings of one exchange."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

Destination = int | str
"""A queue by its id, or an exchange by its name: both of the exchange's own virtual host."""


class Binding(NamedTuple):
    """A binding's identity within its source: two that differ in anything are two bindings."""

    destination: Destination
    routing_key: str = ""
    arguments: bytes = b""  # services/common/message/arguments.py


class ExchangeType(Protocol):
    """Matches messages against bindings. Created without arguments, empty."""

    needs_headers: bool
    """Whether `route` looks at the headers; if not, it may be given none."""

    def bind(self, binding: Binding) -> None:
        """Adds one that is not yet bound; raises PreconditionFailed, and changes nothing, when it cannot be used."""

    def unbind(self, binding: Binding) -> None:
        """Removes one that is bound."""

    def route(self, keys: Collection[str], headers: Mapping[str, Any]) -> set[Destination]:
        """Each destination that at least one binding matches by one of the keys; the caller owns the set.

        Most messages have one key. There may be ten thousand: linear, and not each times what it matches.
        """

    def only_key(self, binding: Binding) -> str | None:
        """The one routing key whose messages the binding can match, or None when there may be more."""


@runtime_checkable
class ByKey(Protocol):
    """An exchange type by which keys that lead to the same destinations can be told without finding these."""

    def end_of(self, key: str) -> object:
        """An object that stands for what the key matches: keys with the same one lead to the same destinations.

        For as long as nothing is bound or unbound. No other exchange gives the same: it may have another alternate.
        Costs little, and no more for a key that comes for the first time; None where that cannot be.
        """
