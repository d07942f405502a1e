"""Numbers of deliveries over all links of a session, whose own maps they are in."""

from __future__ import annotations

import random
from typing import Any, cast

import pytest

from services.common.topology.slots import SlotId
from services.gateway.sessions.consumer import GetHolder
from services.gateway.sessions.delivery_numbers import DeliveryNumbers


def links(count: int) -> list[GetHolder]:
    """So many of them."""
    return [GetHolder(SlotId(number)) for number in range(count)]


def test_what_a_link_has_not_settled_is_its_own() -> None:
    """A range of numbers may be of several links: each is told of its own."""
    one, other = links(2)
    numbers = DeliveryNumbers()
    assert [numbers.add(one, [11, 12]), numbers.add(other, [21]), numbers.add(one, [13])] == [1, 3, 4]
    assert (one.unsettled, other.unsettled) == ({1: 11, 2: 12, 4: 13}, {3: 21})
    taken, unknown = numbers.each(2, 4)
    assert ([(each.holder, each.uids) for each in taken], unknown) == ([(one, [12]), (other, [21]), (one, [13])], 0)
    assert (one.unsettled, other.unsettled, len(numbers)) == ({1: 11}, {}, 1)


def test_up_to_one_that_is_not_there() -> None:
    """None is settled: the client is mistaken."""
    [link] = links(1)
    numbers = DeliveryNumbers()
    numbers.add(link, [11])
    numbers.skip(1)
    assert numbers.up_to(2) == ([], 2)
    assert numbers.up_to(3) == ([], 3)
    assert len(numbers) == 1


def test_up_to_one_of_some_that_are_partly_settled() -> None:
    """What is left behind it is as many as it takes: none of that is taken for what was settled before."""
    [link] = links(1)
    numbers = DeliveryNumbers()
    numbers.add(link, [11, 12, 13, 14, 15])
    numbers.each(2, 2)
    numbers.each(4, 4)
    assert [(list(each.numbers), each.uids) for each in numbers.up_to(3)[0]] == [([1, 3], [11, 13])]
    assert [(list(each.numbers), each.uids) for each in numbers.up_to(5)[0]] == [([5], [15])]


def test_one_by_one_up_to_one_that_is_not_there() -> None:
    """What was said before it was said: it is settled."""
    [link] = links(1)
    numbers = DeliveryNumbers()
    numbers.add(link, [11, 12, 13])
    numbers.each(2, 2)
    taken, unknown = numbers.each(1, 3)
    assert ([each.uids for each in taken], unknown) == ([[11]], 2)


def test_what_was_taken_away_is_no_error() -> None:
    """Its client could not know that it had kept it for too long."""
    [link] = links(1)
    numbers = DeliveryNumbers()
    numbers.add(link, [11, 12, 13])
    assert numbers.take_late([2]) == [12]
    taken, unknown = numbers.each(1, 3)
    assert ([each.uids for each in taken], unknown) == ([[11, 13]], 0)
    assert numbers.up_to(2) == ([], 0)


def test_many_that_are_put_back_are_few_runs() -> None:
    """A large transaction that is rolled back takes no time of others."""
    [link] = links(1)
    numbers = DeliveryNumbers()
    numbers.add(link, range(1000))
    [taken], _ = numbers.up_to(1000)
    for number, uid in zip(taken.numbers, taken.uids, strict=True):
        numbers.put_back(link, number, uid)
    assert len(numbers._runs) == 1
    assert numbers.up_to(0)[0][0].uids == list(range(1000))


def test_runs_go_when_they_are_settled() -> None:
    """One delivery that is kept for ever keeps itself, and not what came behind it."""
    one, other = links(2)
    numbers = DeliveryNumbers()
    for number in range(2000):
        first = numbers.add((one, other)[number % 2], [number])
        if number:
            numbers.each(first, first)
    assert len(numbers._runs) < 100
    assert list(numbers) == [(one, 0)]


def test_runs_are_looked_through_when_most_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links that take turns are a run for each turn: each looked at all others, of which there may be any number."""
    sweep, swept = DeliveryNumbers._sweep, list[int]()

    def counted(its: DeliveryNumbers) -> None:
        swept.append(len(its._runs))
        sweep(its)

    monkeypatch.setattr(DeliveryNumbers, "_sweep", counted)
    those, numbers = links(2), DeliveryNumbers()
    for number in range(2000):
        numbers.add(those[number % 2], [number])
    assert swept == []
    for number in range(1, 2000):
        numbers.up_to(number)
    assert sum(swept) < 5000
    assert list(numbers) == [(those[1], 1999)]


def test_against_a_plain_table() -> None:
    """Whatever is sent, settled, taken away and put back, in whatever order."""
    for seed in range(60):
        _compare(random.Random(seed))


def _compare(chance: random.Random) -> None:
    numbers, those, table = DeliveryNumbers(), links(3), dict[int, tuple[Any, int]]()
    taken_before: list[tuple[Any, int, int]] = []
    for step in range(300):
        number = chance.randrange(1, numbers.next + 1)
        match chance.randrange(6):
            case 0 | 1:
                holder, uids = chance.choice(those), [step * 100 + each for each in range(chance.randrange(1, 5))]
                first = numbers.add(holder, uids)
                table.update({first + at: (holder, uid) for at, uid in enumerate(uids)})
                continue
            case 2:
                numbers.skip(1)
                continue
            case 3 if taken_before:
                holder, number, uid = taken_before.pop()
                numbers.put_back(holder, number, uid)
                table[number] = holder, uid
                continue
            case 4:
                taken, unknown = numbers.up_to(number)
                expected = sorted(each for each in table if each <= number) if number in table else []
                assert bool(unknown) is (number not in table)
            case _:
                last = number + chance.randrange(4)
                taken, unknown = numbers.each(number, last)
                missing = next((each for each in range(number, last + 1) if each not in table), 0)
                assert unknown == missing
                expected = list(range(number, missing or last + 1))
        gone = [(each.holder, at, uid) for each in taken for at, uid in zip(each.numbers, each.uids, strict=True)]
        assert sorted(at for _, at, _ in gone) == expected
        assert all(table.pop(at) == (holder, uid) for holder, at, uid in gone)
        taken_before += gone
        assert len(numbers) == len(table)
        assert sorted(uid for _, uid in numbers) == sorted(uid for _, uid in table.values())
    assert sum(len(each.uids) for each in numbers.take_all()) == len(table)
    assert cast("list[Any]", list(numbers)) == []
