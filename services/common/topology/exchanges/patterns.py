"""Patterns of words as a trie: `*` is one word, `#` any number of them (AMQP 0-9-1, 3.1.3.3). Pure.

A key walks it as an automaton: the nodes that the words so far can have led to move on together, so the cost is words
times live nodes, without backtracking, however many `#` a pattern has.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.common.topology.exchanges.destinations import Destinations


class Node:
    """The end of some words of a pattern; `destinations` are those of the patterns that end here."""

    __slots__ = ("any_words", "destinations", "loops", "one_word", "words")

    def __init__(self, *, loops: bool = False) -> None:
        self.words: dict[str, Node] = {}
        self.one_word: Node | None = None  # *
        self.any_words: Node | None = None  # #
        self.loops = loops  # is itself a `#`: every further word may stay here
        self.destinations = Destinations()

    def child(self, word: str) -> Node | None:
        """Where a further word of a pattern leads."""
        if word == "*":
            return self.one_word
        return self.any_words if word == "#" else self.words.get(word)

    def grow(self, word: str) -> Node:
        """As `child`, made if it is not there."""
        if word == "*":
            self.one_word = self.one_word or Node()
            return self.one_word
        if word == "#":
            self.any_words = self.any_words or Node(loops=True)
            return self.any_words
        return self.words.setdefault(word, Node())

    def prune(self, word: str) -> None:
        """Drops a child that is there."""
        if word == "*":
            self.one_word = None
        elif word == "#":
            self.any_words = None
        else:
            del self.words[word]

    def is_bare(self) -> bool:
        """Whether no pattern needs it."""
        return not (self.destinations or self.words or self.one_word or self.any_words)


def entered(root: Node) -> dict[Node, None]:
    """The nodes that are live before the first word of a key."""
    live: dict[Node, None] = {}
    _enter(live, root)
    return live


def step(live: Iterable[Node], word: str) -> dict[Node, None]:
    """The nodes that are live after a further word."""
    reached: dict[Node, None] = {}
    for node in live:
        for child in (node if node.loops else None, node.words.get(word), node.one_word):
            if child is None:
                continue
            reached[child] = None
            if child.any_words is not None:
                _enter(reached, child)
    return reached


def words_of(key: str) -> list[str]:
    """The empty key has no words; every other has one more than dots."""
    return key.split(".") if key else []


def _enter(live: dict[Node, None], node: Node) -> None:
    live[node] = None
    # A `#` can also stand for no word at all.
    while node.any_words:
        node = node.any_words
        live[node] = None
