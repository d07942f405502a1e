"""The topic exchange: words parted by dots; `*` is one word, `#` any number of them (AMQP 0-9-1, 3.1.3.3).

The patterns are a trie over words. A key walks it as an automaton: the nodes that the words so far can have led to move
on together, so the cost is words times live nodes, without backtracking, however many `#` a pattern has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from services.common.topology.exchanges.destinations import Destinations
from services.common.topology.exchanges.exchange_type import Binding, Destination


class _Node:
    __slots__ = ("any_words", "destinations", "loops", "one_word", "words")

    def __init__(self, *, loops: bool = False) -> None:
        self.words: dict[str, _Node] = {}
        self.one_word: _Node | None = None  # *
        self.any_words: _Node | None = None  # #
        self.loops = loops  # is itself a `#`: every further word may stay here
        self.destinations = Destinations()

    def child(self, word: str) -> _Node | None:
        if word == "*":
            return self.one_word
        return self.any_words if word == "#" else self.words.get(word)

    def grow(self, word: str) -> _Node:
        if word == "*":
            self.one_word = self.one_word or _Node()
            return self.one_word
        if word == "#":
            self.any_words = self.any_words or _Node(loops=True)
            return self.any_words
        return self.words.setdefault(word, _Node())

    def prune(self, word: str) -> None:
        if word == "*":
            self.one_word = None
        elif word == "#":
            self.any_words = None
        else:
            del self.words[word]

    def is_bare(self) -> bool:
        return not (self.destinations or self.words or self.one_word or self.any_words)


class TopicExchange:
    """Cost grows with what matches, not with what is bound."""

    needs_headers = False

    def __init__(self) -> None:
        self._root = _Node()

    def bind(self, binding: Binding) -> None:
        node = self._root
        for word in _words(binding.routing_key):
            node = node.grow(word)
        node.destinations.add(binding.destination)

    def unbind(self, binding: Binding) -> None:
        words = _words(binding.routing_key)
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
        if len(keys) == 1:
            return set().union(*(node.destinations for node in self._walk(*keys)))
        reached: dict[_Node, None] = {}
        for key in keys:
            reached |= self._walk(key)
        found: set[Destination] = set()
        for node in reached:
            found.update(node.destinations)
        return found

    def _walk(self, key: str) -> dict[_Node, None]:
        """The nodes of all patterns that match."""
        live: dict[_Node, None] = {}
        _enter(live, self._root)
        for word in _words(key):
            if not live:
                break
            live = _step(live, word)
        return live

    def only_key(self, binding: Binding) -> str | None:
        words = _words(binding.routing_key)
        return None if "*" in words or "#" in words else binding.routing_key


def _step(live: Iterable[_Node], word: str) -> dict[_Node, None]:
    reached: dict[_Node, None] = {}
    for node in live:
        for child in (node if node.loops else None, node.words.get(word), node.one_word):
            if child is None:
                continue
            reached[child] = None
            if child.any_words is not None:
                _enter(reached, child)
    return reached


def _enter(live: dict[_Node, None], node: _Node) -> None:
    live[node] = None
    # A `#` can also stand for no word at all.
    while node.any_words:
        node = node.any_words
        live[node] = None


def _words(key: str) -> list[str]:
    # The empty key has no words; every other has one more than dots.
    return key.split(".") if key else []
