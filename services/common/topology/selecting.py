"""The bindings of an exchange that have a selector: they match as others do, and pass on what their selector selects.

They are bound to a matcher of the exchange's own type, each place that they lead to under a number: so the cost grows
with what matches, as the type has it, and a selector is asked once of a message, however many bindings have it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from services.common.selectors.selector import Selector
from services.common.topology.exchanges.exchange_type import Binding, Destination, ExchangeType
from services.common.topology.message import Message

_NO_HEADERS: Final[Mapping[str, Any]] = {}
_A_LOOK: Final = 100  # characters of selectors that are evaluated in the time of one


@dataclass(slots=True)
class _Place:
    """A destination for what a selector selects; goes with the last binding that leads there."""

    number: int
    destination: Destination
    selector: Selector
    bindings: int = 0


class Selecting:
    """Of one exchange; `matcher` is an empty one of its type."""

    def __init__(self, matcher: ExchangeType) -> None:
        self._matcher = matcher
        self._numbers = count()
        self._places: dict[tuple[Destination, str], _Place] = {}
        self._by_number: dict[Destination, _Place] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def bind(self, binding: Binding, selector: Selector) -> None:
        """One that is not bound; its arguments are those that are left for the type. Raises as ExchangeType does."""
        key = binding.destination, selector.text
        place = self._places.get(key) or _Place(next(self._numbers), binding.destination, selector)
        self._matcher.bind(binding._replace(destination=place.number))
        place.bindings += 1
        self._places[key] = self._by_number[place.number] = place

    def unbind(self, binding: Binding, selector: Selector) -> None:
        """One that is bound."""
        key = binding.destination, selector.text
        place = self._places[key]
        self._matcher.unbind(binding._replace(destination=place.number))
        place.bindings -= 1
        if not place.bindings:
            del self._places[key], self._by_number[place.number]

    def route(self, keys: Collection[str], message: Message) -> tuple[set[Destination], int]:
        """Where a message goes by them, and how much it was looked at, as Source.route says."""
        by_headers = self._matcher.needs_headers
        matched = self._matcher.route(keys, message.headers() if by_headers else _NO_HEADERS)
        places = [self._by_number[number] for number in matched]
        asked = {place.selector.text: place.selector for place in places}
        wanted = {text for text, selector in asked.items() if selector.selects(message.look_up)}
        looks = by_headers + len(asked) + sum(map(len, asked)) // _A_LOOK
        return {place.destination for place in places if place.selector.text in wanted}, looks
