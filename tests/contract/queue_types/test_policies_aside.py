"""A limit that comes to a queue with messages that stand aside."""

from __future__ import annotations

import pytest

from services.common.message.facts import Facts
from services.queue.machine import turn
from tests.support.messages import facts
from tests.support.queue_machine import Machine


def held(not_before: int) -> Facts:
    return facts("amq.direct", not_before=not_before)


def test_the_oldest_goes_though_it_stands_aside() -> None:
    """Those that were aside before the limit came have their places as well."""
    machine = Machine(table={"holdOnPublishEnabled": True}, dead_letter_exchange="dlx")
    machine.publish_mixed([held(100), held(0), held(200)])
    machine.adopt({"max-length": 1})
    machine.queue.expire(1)
    assert machine.dead() == [(1, "maxlen"), (2, "maxlen")]
    assert machine.queue.ready_count == 1


@pytest.mark.parametrize("overflow", ["drop-head", "reject-publish"])
def test_all_have_their_places_some_time(monkeypatch: pytest.MonkeyPatch, overflow: str) -> None:
    """By the clock, whatever is done with what is too much: what has left would be kept in memory for ever."""
    monkeypatch.setattr(turn, "SCATTERED", 2)
    machine = Machine(table={"holdOnPublishEnabled": True})
    machine.publish_mixed([held(100)] * 9)
    machine.adopt({"max-length": 20, "overflow": overflow})
    aside = machine.queue._entries.aside
    assert aside is not None
    looks = [machine.queue.deadline() for _ in range(6)]
    assert looks[0] == 1
    assert looks[-1] == 100
    assert (aside._unranked, len(aside._by_rank._known)) == ([], 9)


def test_a_purge_forgets_them() -> None:
    """Also those that have not been given their places yet."""
    machine = Machine(table={"holdOnPublishEnabled": True})
    machine.publish_mixed([held(100)] * 9)
    machine.adopt({"max-length": 20})
    machine.queue.picking.purge()
    aside = machine.queue._entries.aside
    assert aside is not None
    assert aside._unranked == []
