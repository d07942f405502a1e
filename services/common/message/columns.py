"""Columns of a batch on the wire: what repeats is said once, in a table, with an index for each message.

Facts repeat in nearly every stream; properties repeat, or are another for each message. See PublishBatch and
DeliveryBatch in proto/queue.proto, which have the same fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from services.common.errors import InternalError
from services.common.message import facts_table
from services.common.message.alike import objects
from services.common.message.facts import Facts, from_bytes, to_bytes
from services.common.message.facts_by_key import with_keys

_T = TypeVar("_T")


class Batch(Protocol):
    """What PublishBatch and DeliveryBatch have in common."""

    @property
    def uids(self) -> Sequence[int]: ...

    @property
    def facts(self) -> Any: ...  # noqa: ANN401 - protobuf's containers

    @property
    def facts_of(self) -> Any: ...  # noqa: ANN401

    @property
    def keys(self) -> Any: ...  # noqa: ANN401

    @property
    def properties(self) -> Any: ...  # noqa: ANN401

    @property
    def properties_of(self) -> Any: ...  # noqa: ANN401


def put(batch: Batch, facts: Sequence[Facts], properties: Sequence[bytes], *, keys: bool = False) -> None:
    """Adds the facts and properties of all messages, one each, to a batch that has none.

    With `keys` its reader knows these, and nobody writes it to a disk.
    """
    table, indexes = _tabled(facts)
    if keys and len(table) == len(facts) and (found := facts_table.new_by_key(table)):
        batch.facts.append(to_bytes(found.facts))
        batch.keys.extend(found.keys)
    else:
        batch.facts.extend(facts_table.written(table))
        batch.facts_of.extend(indexes)
    own, indexes = _tabled(properties)
    batch.properties.extend(own)
    batch.properties_of.extend(indexes)


def facts_in(batch: Batch) -> list[Facts]:
    """One for each message. Raises InternalError for a batch that contradicts itself."""
    if batch.keys:
        return _with_keys(batch)
    return _spread(facts_table.read(batch.facts), batch.facts_of, len(batch.uids))


def _with_keys(batch: Batch) -> list[Facts]:
    said = len(batch.facts), len(batch.facts_of), len(batch.keys)
    if said != (1, 0, len(batch.uids)):
        raise InternalError(f"facts, indexes and keys are {said} for {len(batch.uids)} messages")
    facts = from_bytes(batch.facts[0])
    if facts.persistent:  # what has them goes to a disk as it came, and is not read there
        raise InternalError("persistent messages with a column of keys")
    return with_keys(facts, batch.keys)


def properties_in(batch: Batch) -> list[bytes]:
    """One for each message. Raises InternalError for a batch that contradicts itself."""
    return _spread(list(batch.properties), batch.properties_of, len(batch.uids))


def _tabled(values: Sequence[_T]) -> tuple[Sequence[_T], Iterable[int]]:
    """The distinct values, and an index for each; no indexes where all have one value, or hardly two have the same."""
    if len(values) == 1:  # who sends one at a time waits for it
        return values, ()
    found = objects(values)
    if 2 * len(found) > len(values):
        return values, ()
    numbers: dict[_T, int] = {}
    by_identity = {identity: numbers.setdefault(value, len(numbers)) for identity, value in found.items()}
    if len(numbers) == 1:
        return tuple(numbers), ()
    return tuple(numbers), map(by_identity.__getitem__, map(id, values))


def _spread(table: list[_T], indexes: Sequence[int], count: int) -> list[_T]:
    found = table * count if len(table) == 1 else table
    if indexes:
        found = list(map(table.__getitem__, indexes))
    if len(found) != count:
        raise InternalError(f"{len(found)} values for {count} messages")
    return found
