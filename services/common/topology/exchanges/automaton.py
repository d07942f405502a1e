"""Patterns as a deterministic automaton, made from their trie as keys come by: a word is one look-up. Pure.

A state stands for all nodes that are live after some words, so keys that end in one state lead to the same
destinations. A word that no live node names leads where any other such word does: words that are always new (a device,
an order) make no states of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from services.common.topology.exchanges.destinations import Destinations
from services.common.topology.exchanges.patterns import Node, entered, step, words_of

_PER_WORD: Final = 16  # references that states hold, at most, for each word of a pattern: `#` can make very many states
_MOST: Final = 16384  # … and of all of an exchange: beyond, it begins again


class State:
    """After some words of a key; `ends` has the destinations of each pattern that matches if the key ends here."""

    __slots__ = ("_named", "_other", "ends", "live", "next")

    def __init__(self, live: Iterable[Node]) -> None:
        self.live = tuple(live)
        self.ends: tuple[Destinations, ...] = tuple(node.destinations for node in self.live if node.destinations)
        self.next: dict[str, State] = {}  # by a word that some live node names
        self._named = tuple(node.words for node in self.live if node.words)
        self._other: State | None = None  # by any other word

    def after(self, word: str, automaton: Automaton) -> State:
        """The state after a word that is not in `next`."""
        for each in self._named:
            if word in each:
                found = self.next[word] = automaton.state(step(self.live, word))
                return found
        if self._other is None:
            self._other = automaton.state(step(self.live, word))
        return self._other

    def cut(self) -> None:
        """Lets go of the states behind it, which may be itself."""
        self.next, self._other = {}, None


class Automaton:
    """Of the patterns below a node; to be forgotten with any change of them."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._start: State | None = None
        self._states: dict[frozenset[Node], State] = {}
        self._size = 0  # references that states hold
        self._words = 0  # of all patterns

    def run(self, key: str) -> State:
        """The state in which a key ends: the same object for keys that lead to the same destinations, mostly."""
        if self._size > _MOST or self._size > _PER_WORD * (1 + self._words):
            self._forget()
        state = self._start
        if state is None:
            state = self._start = self.state(entered(self._root))
        for word in words_of(key):
            state = state.next.get(word) or state.after(word, self)
        return state

    def changed(self, words: int) -> None:
        """So many words more are in patterns, or fewer: what was made of them is of no use."""
        self._words += words
        if self._start:
            self._forget()

    def state(self, live: dict[Node, None]) -> State:
        """The one for these nodes."""
        nodes = frozenset(live)
        self._size += 1
        if (known := self._states.get(nodes)) is None:
            known = self._states[nodes] = State(live)
            self._size += len(live)
        return known

    def _forget(self) -> None:
        for state in self._states.values():
            state.cut()  # else they hold each other until the collector comes by, which is seldom
        self._start, self._states, self._size = None, {}, 0
