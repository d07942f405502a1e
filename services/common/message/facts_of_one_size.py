"""Facts that take equally many bytes, read together: mostly they differ at few places, of a key or a number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, Final

from services.common.message.facts import BEHIND, KEY, NUMBERS, Facts, from_bytes, to_bytes
from services.common.message.facts_forms import SHORT, form_of
from services.common.message.same_places import same_places
from services.common.message.varints import numbers_at

_MAKE: Final = partial(tuple.__new__, Facts)
_Span = tuple[int, int]


def of_one_size(raw: Sequence[bytes]) -> list[Facts] | None:
    """Of each serialised MessageFacts; None where each has to be looked at by itself. Raises DecodeError."""
    first, together = from_bytes(raw[0]), same_places(raw, b"".join(raw))
    key, numbers = _spans(first)
    if together is None or not 0 < key[1] - key[0] < SHORT or to_bytes(first) != raw[0]:
        return None
    if not together.alike(_outside((key, *numbers.values()), len(raw[0]))):
        return None
    columns: list[Iterable[Any] | None] = [repeat(value, len(raw)) for value in first]
    if not together.alike(range(*key)):
        columns[KEY] = together.texts(*key)
    for index, span in numbers.items():
        if not together.alike(range(*span)):
            columns[index] = numbers_at(together, *span)
    if None in columns:
        return None
    return list(map(_MAKE, zip(*columns, strict=True)))


def _spans(facts: Facts) -> tuple[_Span, dict[int, _Span]]:
    """Where its key stands in its bytes, and each of its facts that are numbers, behind their tags."""
    before, middle, *_ = form_of(facts)
    start = len(before) + 1
    end = start + len(facts.routing_key.encode())
    at, spans = end + len(middle), dict[int, _Span]()
    for index in range(NUMBERS, BEHIND):
        number: Any = facts[index]
        if number is not None:
            size = (number.bit_length() + 6) // 7 or 1
            spans[index] = at + 1, at + 1 + size
            at += 1 + size
    return (start, end), spans


def _outside(spans: Iterable[_Span], size: int) -> Iterator[int]:
    at = 0
    for start, end in spans:
        yield from range(at, start)
        at = end
    yield from range(at, size)
