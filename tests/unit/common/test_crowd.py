"""Who has most, of many that come and go."""

from __future__ import annotations

import random
from collections import Counter

from services.common.crowd import Ranks, Waiting, Whose


class Peer:
    """One connection."""


def test_ranks() -> None:
    """The largest count is known after each change, as if all were looked at."""
    ranks, model, chance = Ranks[str](), Counter[str](), random.Random(7)
    assert ranks.most is None
    for _ in range(2000):
        key = chance.choice("abcde")
        if model[key] and chance.random() < 0.55:
            ranks.remove(key)
            model[key] -= 1
        else:
            ranks.add(key)
            model[key] += 1
        most = ranks.most
        assert max(model.values()) == (model[most] if most else 0)
        assert all(ranks[each] == model[each] for each in "abcde")


def test_who_waits_for_longest() -> None:
    """Where the most wait, and of the user that waits most often there; twice is once."""
    waiting = Waiting[Peer]()
    peers = {
        Whose(*each): [Peer() for _ in range(count)] for *each, count in (("a", "x", 2), ("a", "y", 3), ("b", "", 4))
    }
    for whose, its in peers.items():
        for each in its * 2:
            waiting.add(each, whose)
    assert waiting.longest() is peers[Whose("a", "y")][0]
    assert waiting.longest("b") is peers[Whose("b")][0]
    assert waiting.longest("c") is None
    for whose, its in peers.items():
        assert [waiting.remove(each, whose) for each in its * 2] == [True] * len(its) + [False] * len(its)
    assert waiting.longest() is waiting.longest("a") is None
    assert not any((waiting._peers, waiting._users, waiting._places._counts, waiting._places._having))
