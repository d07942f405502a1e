"""Facts but for their keys and numbers, as bytes and as what they say; and facts read by forms that came before."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from services.common.message.facts import BEHIND, KEY, KEY_TAG, NUMBERS, Facts, around, from_bytes, numbers_in

SHORT: Final = 128  # octets of a key whose length takes one
OCTETS: Final = tuple(bytes((number,)) for number in range(SHORT))
_FORMS: Final = 16  # that are looked for; what alternates between more is read by itself


class Form(NamedTuple):
    """Of some facts: as bytes, and as what they say; in the order in which they come."""

    before: bytes  # with the tag of the key
    middle: bytes  # between the key and the numbers
    last: bytes
    first: tuple[Any, ...]
    kind: tuple[Any, ...]
    behind: tuple[Any, ...]


class _Around(NamedTuple):
    """Facts but for their key: `before` it, with its tag, and `after` it as bytes, and the `first` and the `rest`."""

    before: bytes
    after: bytes
    first: tuple[Any, ...]
    rest: tuple[Any, ...]


class _Stem(NamedTuple):
    """Facts up to their numbers, as bytes and as what they say, and what stands `behind` these, which is the `last`."""

    stem: bytes
    last: bytes
    head: tuple[Any, ...]
    behind: tuple[Any, ...]


_NOTHING: Final = _Around(b"", b"", (), ()), _Stem(b"", b"", (), ())


def form_of(facts: Facts) -> Form:
    first, kind, behind = facts[:KEY], facts[KEY + 1 : NUMBERS], facts[BEHIND:]
    before, middle, last = around(first, kind, behind)
    return Form(before + KEY_TAG, middle, last, first, kind, behind)


class Forms:
    """That came in one table."""

    __slots__ = ("_around", "_forms", "_stem")

    def __init__(self) -> None:
        self._forms: list[Form] = []
        self._around, self._stem = _NOTHING  # of the latest that was read alone

    def read(self, raw: bytes) -> Facts:
        """Raises DecodeError for what is no serialised MessageFacts."""
        before, after, first, rest = self._around
        # What fits can be read in no other way: the length of the key says where it ends.
        at, end = len(before), len(raw) - len(after)
        fits = 0 < at < end and raw[at] == end - at - 1 < SHORT and raw.startswith(before) and raw.endswith(after)
        if fits and (key := raw[at + 1 : end]).isascii():
            return tuple.__new__(Facts, (*first, key.decode(), *rest))
        stem, last, head, behind = self._stem
        if stem and raw.startswith(stem) and (numbers := _numbers(raw, len(stem), last)):
            return tuple.__new__(Facts, (*head, *numbers, *behind))
        return self._read_alone(raw)

    def _read_alone(self, raw: bytes) -> Facts:
        """By one of these forms, or by itself: then its own is added, if there is room and its key is short."""
        for form in self._forms:
            if facts := self._by_form(form, raw):
                return facts
        facts = from_bytes(raw)
        if len(self._forms) < _FORMS and len(facts.routing_key) < SHORT:
            self._forms.append(form_of(facts))
        self._around, self._stem = _NOTHING
        return facts

    def _by_form(self, form: Form, raw: bytes) -> Facts | None:
        """None if it has another form, or protobuf would say that it has none."""
        before, middle, last, first, kind, behind = form
        at = len(before)
        if not raw.startswith(before) or at == len(raw) or raw[at] >= SHORT:
            return None
        end = at + 1 + raw[at]
        between = end + len(middle)
        if not raw.startswith(middle, end) or (numbers := _numbers(raw, between, last)) is None:
            return None
        try:
            key = raw[at + 1 : end].decode()
        except UnicodeDecodeError:
            return None
        rest = (*kind, *numbers, *behind)
        self._around = _Around(before, raw[end:], first, rest)
        self._stem = _Stem(raw[:between], last, (*first, key, *kind), behind)
        return tuple.__new__(Facts, (*first, key, *rest))


def _numbers(raw: bytes, start: int, last: bytes) -> tuple[int | None, ...] | None:
    """Those from `start` on, if `last` is all that stands behind them; None: protobuf has to say."""
    end = len(raw) - len(last)
    return numbers_in(raw[start:end]) if start <= end and raw.endswith(last) else None
