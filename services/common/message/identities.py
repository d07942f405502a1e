"""What messages can be looked up by, of many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from services.common.errors import SyntaxFault


class Named(NamedTuple):
    """Ids of one kind, and of which messages they are: an index for each."""

    kind: str
    indexes: Sequence[int]
    ids: Sequence[str]


def each(identities: Callable[[bytes], Iterable[tuple[str, str]]], column: Sequence[bytes]) -> list[Named]:
    """What a format finds in each of some properties; nothing in those that cannot be read."""
    found: dict[str, tuple[list[int], list[str]]] = {}
    for index, properties in enumerate(column):
        with suppress(SyntaxFault):
            for kind, name in identities(properties):
                indexes, ids = found.setdefault(kind, ([], []))
                indexes.append(index)
                ids.append(name)
    return [Named(kind, *columns) for kind, columns in found.items()]
