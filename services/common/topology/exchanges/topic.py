"""The topic exchange: words parted by dots; `*` is one word, `#` any number of them (AMQP 0-9-1, 3.1.3.3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from services.common.topology.exchanges.automaton import Automaton
from services.common.topology.exchanges.exchange_type import Binding, Destination
from services.common.topology.exchanges.patterns import Node, words_of


class TopicExchange:
    """Cost grows with what matches, not with what is bound."""

    needs_headers = False

    def __init__(self) -> None:
        self._root = Node()
        self._automaton = Automaton(self._root)
        self.end_of: Callable[[str], object] = self._automaton.run
        """As ByKey says."""

    def bind(self, binding: Binding) -> None:
        node, words = self._root, words_of(binding.routing_key)
        for word in words:
            node = node.grow(word)
        node.destinations.add(binding.destination)
        self._automaton.changed(1 + len(words))

    def unbind(self, binding: Binding) -> None:
        words = words_of(binding.routing_key)
        self._automaton.changed(-1 - len(words))
        path = [self._root]
        for word in words:
            child = path[-1].child(word)
            assert child, "what is bound has a path"
            path.append(child)
        path.pop().destinations.drop(binding.destination)
        for parent, word in zip(reversed(path), reversed(words), strict=True):
            child = parent.child(word)
            if child is None or not child.is_bare():
                return
            parent.prune(word)

    def route(self, keys: Collection[str], headers: Mapping[str, Any]) -> set[Destination]:  # noqa: ARG002 - the protocol's
        ends_of = self._automaton.ends
        if len(keys) == 1:
            return set().union(*ends_of(*keys))
        ends = {id(end): end for key in keys for end in ends_of(key)}
        return set().union(*ends.values())

    def only_key(self, binding: Binding) -> str | None:
        words = words_of(binding.routing_key)
        return None if "*" in words or "#" in words else binding.routing_key
