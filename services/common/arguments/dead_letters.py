"""Where a queue's dead letters go, as a client says it: to be asked for before the queue is declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from services.common.arguments import queue
from services.common.arguments.alternates import Alternate, alternates, is_said_in
from services.common.arguments.reading import Wrong, said

_NAMES: Final = (queue.DEAD_LETTER_EXCHANGE.name, "alternateExchange")
_DEFAULT: Final = ""  # the exchange that leads to queues


class Letters(NamedTuple):
    """The exchange that gets them, if any; other ones that may; and a queue that is made for them."""

    exchange: str | None = None
    others: tuple[str, ...] = ()
    made: str | None = None


NONE: Final = Letters()


def letters_of(table: Mapping[str, Any], name: str, is_exchange: Callable[[str], bool | None]) -> Letters:
    """Of a queue of that `name`, by whichever arguments; what is no value, and two that differ, the router refuses.

    Where `is_exchange` does not know (None), it may be the exchange of that name, or the one that leads to the queue.
    """
    found = {} if (exchange := _exchange_of(table)) is None else {exchange: None}
    if not is_said_in(table):
        return Letters(exchange)
    its = _alternates(table, name)
    found |= {exchange: None for each in its for exchange in _candidates(each, is_exchange)}
    made = next((each.destination for each in its if each.made), None)
    return Letters(next(iter(found), None), tuple(found)[1:], made)


def _exchange_of(table: Mapping[str, Any]) -> str | None:
    return queue.DEAD_LETTER_EXCHANGE.of(said({name: table[name] for name in _NAMES if name in table}))


def _alternates(table: Mapping[str, Any], name: str) -> list[Alternate]:
    try:
        return alternates(table, name)
    except Wrong:
        return []


def _candidates(alternate: Alternate, is_exchange: Callable[[str], bool | None]) -> Iterator[str]:
    there = is_exchange(alternate.destination)
    if there is not False:
        yield alternate.destination
    if not there:
        yield _DEFAULT
