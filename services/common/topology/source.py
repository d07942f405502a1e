"""An exchange as messages come to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from services.common.arguments.binding import NO_LOCAL, SELECTOR
from services.common.message import arguments
from services.common.selectors.selector import Selector
from services.common.topology.definitions import Exchange
from services.common.topology.exchanges.exchange_type import Binding, Destination, ExchangeType
from services.common.topology.message import Message
from services.common.topology.selecting import Selecting

_NO_HEADERS: Final[Mapping[str, Any]] = {}
_NAMED: Final = SELECTOR.name.encode()
_NO_LOCAL: Final = NO_LOCAL.name.encode()
_AS_ONE: Final = 32  # bytes of arguments with a selector in them: compiled, they take as much as a binding without


class Source:
    """An exchange with what is bound to it. `matcher` has the bindings that take all that they match.

    `sparing` has those to queues that pass on nothing of their consumers' own, as if they were another exchange's.
    """

    __slots__ = ("_selecting", "alternate", "bindings", "definition", "matcher", "sparing")

    def __init__(self, definition: Exchange, matcher: ExchangeType) -> None:
        self.definition = definition
        self.matcher = matcher
        self.alternate: str | None = arguments.load(definition.arguments).get("alternate-exchange")
        self.bindings: dict[Binding, None] = {}
        self._selecting: Selecting | None = None  # where some binding has a selector
        self.sparing: Source | None = None

    def bind(self, binding: Binding) -> None:
        """Adds one that is not yet bound; raises as ExchangeType.bind does."""
        plain, selector = _apart(binding)
        if _spares(binding):
            sparing = self.sparing or Source(self.definition, type(self.matcher)())
            sparing.bind(_everyones(binding))
            self.sparing = sparing
        elif selector is None:
            self.matcher.bind(plain)
        else:
            selecting = self._selecting or Selecting(type(self.matcher)())
            selecting.bind(plain, selector)
            self._selecting = selecting
        self.bindings[binding] = None

    def unbind(self, binding: Binding) -> None:
        """Removes one that is bound."""
        plain, selector = _apart(binding)
        if self.sparing and _spares(binding):
            self.sparing.unbind(_everyones(binding))
            self.sparing = self.sparing if self.sparing.bindings else None
        elif selector is None or self._selecting is None:
            self.matcher.unbind(plain)
        else:
            self._selecting.unbind(plain, selector)
            self._selecting = self._selecting or None
        del self.bindings[binding]

    def route(self, keys: Collection[str], message: Message) -> tuple[set[Destination], int]:
        """Where a message goes by the bindings, whoever sends it, and how much of it was looked at besides its keys.

        0: any other with these keys goes there too.
        """
        found, looks = self._route(keys, message)
        if self.sparing is None:
            return found, looks
        more, its = self.sparing.route(keys, message)
        return found | more, looks + its

    def end_of(self) -> Callable[[str], object] | None:
        """As ByKey says, where keys alone decide; until the next change."""
        if self.sparing is not None or self._selecting is not None:
            return None
        end_of: Callable[[str], object] | None = getattr(self.matcher, "end_of", None)
        return end_of

    def not_local(self, keys: Collection[str], message: Message) -> set[Destination]:
        """Those of these where it goes only if it came on no connection that consumes there."""
        if self.sparing is None:
            return set()
        return self.sparing.route(keys, message)[0] - self._route(keys, message)[0]

    def _route(self, keys: Collection[str], message: Message) -> tuple[set[Destination], int]:
        by_headers = self.matcher.needs_headers
        found = self.matcher.route(keys, message.headers() if by_headers else _NO_HEADERS)
        if self._selecting is None:
            return found, by_headers
        selected, looks = self._selecting.route(keys, message)
        return found | selected, by_headers + looks


def weight(binding: Binding) -> int:
    """As how many bindings it counts, by the memory that it takes."""
    return 1 + (len(binding.arguments) // _AS_ONE if _NAMED in binding.arguments else 0)


def _spares(binding: Binding) -> bool:
    """Of one that was bound before this was known, it may say what is none."""
    if isinstance(binding.destination, str) or _NO_LOCAL not in binding.arguments:
        return False
    value = arguments.load(binding.arguments).get(NO_LOCAL.name)
    return not NO_LOCAL.check(value) and NO_LOCAL.read(value)


def _everyones(binding: Binding) -> Binding:
    """The same for whatever is sent."""
    table = dict(arguments.load(binding.arguments))
    del table[NO_LOCAL.name]
    return binding._replace(arguments=arguments.dump(table) if table else b"")


def _apart(binding: Binding) -> tuple[Binding, Selector | None]:
    """The binding without its selector, which is no condition of the exchange's type; and the selector.

    One that was bound before there were selectors may have what is none: that says nothing.
    """
    table = arguments.load(binding.arguments) if binding.arguments else {}
    if SELECTOR.name not in table or SELECTOR.check(table[SELECTOR.name]):
        return binding, None
    selector = SELECTOR.of(table)
    del table[SELECTOR.name]
    return binding._replace(arguments=arguments.dump(table)), selector
