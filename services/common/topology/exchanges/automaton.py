"""Patterns as a deterministic automaton, made from their trie as keys come by: a word is one look-up. Pure.

A state stands for all nodes that are live after some words, so keys that end in one state lead to the same
destinations. A word that no live node names leads where any other such word does: words that are always new (a device,
an order) make no states of their own. Patterns with many `#` can make more states than there are keys: then the trie
itself is walked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from services.common.topology.exchanges.destinations import Destinations
from services.common.topology.exchanges.patterns import Node, entered, step, words_of

_PER_WORD: Final = 16  # nodes looked at to make states, at most, for each word of a pattern …
_MOST: Final = 16384  # … and for all of an exchange: beyond, it begins again …
_PER_KEY: Final = 8  # … if it was that many for each key, or fewer: else states are not worth making


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
                found = self.next[word] = automaton.step(self.live, word)
                return found
        if self._other is None:
            self._other = automaton.step(self.live, word)
        return self._other

    def cut(self) -> None:
        """Lets go of all but its ends: of the states behind it, which may be itself, and of the trie."""
        self.next, self._other = {}, None
        self.live, self._named = (), ()


class Automaton:
    """Of the patterns below a node; to be forgotten with any change of them."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._start: State | None = None
        self._states: dict[frozenset[Node], State] = {}
        self._looks = 0  # at nodes, to make these states
        self._keys = 0  # that were run meanwhile
        self._words = 0  # of all patterns, by which are …
        self._most = _PER_WORD  # … so many looks at most
        self._in_vain = False

    def run(self, key: str) -> State | None:
        """The state in which a key ends: the same object for keys that lead to the same destinations, mostly.

        None where these patterns have made more states than they are worth.
        """
        state = self._start
        if state is None:
            if self._in_vain:
                return None
            state = self._start = self._state(entered(self._root))
        for word in words_of(key):
            state = state.next.get(word) or state.after(word, self)
        self._keys += 1
        if self._looks > self._most:
            self._in_vain = self._looks > _PER_KEY * self._keys
            self._forget()
        return state

    def ends(self, key: str) -> Iterable[Destinations]:
        """The destinations of each pattern that matches a key."""
        state = self.run(key)
        if state:
            return state.ends
        live = entered(self._root)
        for word in words_of(key):
            live = step(live, word)
        return [node.destinations for node in live if node.destinations]

    def changed(self, words: int) -> None:
        """So many words more are in patterns, or fewer: what was made of them is of no use."""
        self._words += words
        self._most = min(_MOST, _PER_WORD * (1 + self._words))
        self._in_vain = False
        if self._start:
            self._forget()

    def step(self, live: Collection[Node], word: str) -> State:
        """The state for the nodes that are live after a further word."""
        self._looks += len(live)
        return self._state(step(live, word))

    def _state(self, live: dict[Node, None]) -> State:
        nodes = frozenset(live)
        self._looks += 1
        if (known := self._states.get(nodes)) is None:
            known = self._states[nodes] = State(live)
            self._looks += len(live)
        return known

    def _forget(self) -> None:
        for state in self._states.values():
            state.cut()  # else they hold each other until the collector comes by, which is seldom
        self._start, self._states, self._looks, self._keys = None, {}, 0, 0
