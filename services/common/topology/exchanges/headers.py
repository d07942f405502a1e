"""The headers exchange: a binding's arguments are conditions on the message's headers (AMQP 0-9-1, 3.1.3.4).

`x-match` says how many must hold: `all` (also when it is missing) or `any`. Arguments that begin with "x-" are no
conditions, unless it says `all-with-x` or `any-with-x`. An argument without a value asks that the header exists.

`any` is a look-up per header. For `all`, the conditions of each binding, sorted by header name, are a path in a trie;
a message follows every path that its own sorted headers allow. It visits only what matches so far, and headers that no
binding mentions are not even looked at. However many headers there are, it looks no oftener than there are conditions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import Any

from services.common.errors import PreconditionFailed
from services.common.message import arguments
from services.common.topology.exchanges.destinations import Destinations
from services.common.topology.exchanges.exchange_type import Binding, Destination

_EXISTS = "exists"
_ALL = {"all": False, "all-with-x": True}  # → whether arguments that begin with "x-" count
_ANY = {"any": False, "any-with-x": True}

_Condition = tuple[str, Hashable]


class _Node:
    __slots__ = ("children", "destinations")

    def __init__(self) -> None:
        self.children: dict[_Condition, _Node] = {}
        self.destinations = Destinations()


class HeadersExchange:
    """Cost grows with what matches, not with what is bound."""

    needs_headers = True

    def __init__(self) -> None:
        self._mentions: dict[str, int] = {}  # header name → conditions about it
        self._any: dict[_Condition, Destinations] = {}
        self._all = _Node()

    def bind(self, binding: Binding) -> None:
        any_suffices, conditions = _read(binding)
        for name, _ in conditions:
            self._mentions[name] = self._mentions.get(name, 0) + 1
        if any_suffices:
            for condition in conditions:
                self._any.setdefault(condition, Destinations()).add(binding.destination)
        else:
            self._grow(conditions).destinations.add(binding.destination)

    def unbind(self, binding: Binding) -> None:
        any_suffices, conditions = _read(binding)
        for name, _ in conditions:
            self._mentions[name] -= 1
            if not self._mentions[name]:
                del self._mentions[name]
        if any_suffices:
            self._drop_any(conditions, binding.destination)
        else:
            self._drop_all(conditions, binding.destination)

    def route(self, keys: Collection[str], headers: Mapping[str, Any]) -> set[Destination]:  # noqa: ARG002 - the protocol's
        mentions = self._mentions
        held = [_held(name, headers[name]) for name in sorted(headers) if name in mentions]
        found: set[Destination] = set(self._all.destinations)
        for condition in (condition for pair in held for condition in pair):
            found.update(self._any.get(condition, ()))
        for node in self._walk(held):
            found.update(node.destinations)
        return found

    def only_key(self, binding: Binding) -> str | None:  # noqa: ARG002 - the protocol's
        return None

    def _walk(self, held: list[tuple[_Condition, _Condition]]) -> Iterator[_Node]:
        """Every node below the root whose conditions all hold."""
        places = {condition: index for index, pair in enumerate(held) for condition in pair}
        pending = [(self._all, 0)]
        while pending:
            node, position = pending.pop()
            for child, index in _reached(node.children, held, position, places):
                yield child
                pending.append((child, index + 1))

    def _grow(self, conditions: list[_Condition]) -> _Node:
        node = self._all
        for condition in conditions:
            node = node.children.setdefault(condition, _Node())
        return node

    def _drop_any(self, conditions: list[_Condition], destination: Destination) -> None:
        for condition in conditions:
            self._any[condition].drop(destination)
            if not self._any[condition]:
                del self._any[condition]

    def _drop_all(self, conditions: list[_Condition], destination: Destination) -> None:
        path = [self._all]
        for condition in conditions:
            path.append(path[-1].children[condition])
        node = path.pop()
        node.destinations.drop(destination)
        for parent, condition in zip(reversed(path), reversed(conditions), strict=True):
            if node.destinations or node.children:
                return
            del parent.children[condition]
            node = parent


def _reached(
    children: Mapping[_Condition, _Node],
    held: list[tuple[_Condition, _Condition]],
    position: int,
    places: Mapping[_Condition, int],
) -> Iterator[tuple[_Node, int]]:
    """The children whose condition holds, and where. Asks for the fewer: what there is, or what is held from here on.

    Children's names come behind those of the path, as what is held behind `position` does, so both ways find the same.
    """
    if len(children) < len(held) - position:
        for condition, child in children.items():
            if (place := places.get(condition)) is not None:
                yield child, place
        return
    for index in range(position, len(held)) if children else ():
        for condition in held[index]:
            if found := children.get(condition):
                yield found, index


def _read(binding: Binding) -> tuple[bool, list[_Condition]]:
    """Whether any condition suffices, and the conditions sorted by header name."""
    table = arguments.load(binding.arguments)
    match = table.pop("x-match", "all")
    if match not in (*_ALL, *_ANY):
        raise PreconditionFailed(
            f"invalid x-match field value {match!r}; expected all, any, all-with-x, or any-with-x",
        )
    with_x = {**_ALL, **_ANY}[match]
    names = sorted(name for name in table if with_x or not name.startswith("x-"))
    return match in _ANY, [(name, _EXISTS if table[name] is None else identity(table[name])) for name in names]


def _held(name: str, value: object) -> tuple[_Condition, _Condition]:
    """The conditions that a message with this header fulfils."""
    return (name, _EXISTS), (name, identity(value))


def identity(value: object) -> Hashable:
    """The same for two header values exactly when they are equal on the wire.

    1, 1.0 and true are three things; text and its bytes are one.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass"), "text"
    if isinstance(value, bytes):
        return value, "text"
    if isinstance(value, list | dict):
        return arguments.dump({"": value}), "nested"
    if isinstance(value, float) and math.isnan(value):
        return "nan", "float"  # which Python takes for another one each time
    return value, type(value).__name__
