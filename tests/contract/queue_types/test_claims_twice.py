"""Messages that are there twice, or that two gateways say to hold, where they are claimed in parts."""

from __future__ import annotations

from services.queue.machine.entry import Entry, JournalPart
from services.queue.machine.message import Message
from tests.support.messages import PROPERTIES, facts
from tests.support.queue_machine import FakeLink, Machine, Make


def seek(machine: Machine, uids: list[int], *links: FakeLink) -> None:
    """Each of these says that it holds them; then all are looked for."""
    seeking = machine.queue.seeking
    seeking.hold_up()
    for link in links:
        seeking.expect(uids, link, None, 0)
    walk = seeking.begin()
    while seeking.look(walk, 0):
        pass
    seeking.go_on(0)


def test_twice_in_the_list(make: Make) -> None:
    """Of a message that is there twice one is the client's, and the other stays in the list: none is lost."""
    machine = make(durable=True)
    its = [Message(uid, facts(persistent=True), PROPERTIES, b"body") for uid in (1, 1, 2)]
    machine.account.hold(its, sum(one.kept for one in its), machine.queue.holding)
    machine.queue.recover([Entry(one, place, part=JournalPart(7, 0)) for place, one in enumerate(its)], 0)
    seek(machine, [1], machine.link)
    assert (list(machine.queue.unsettled), machine.queue.ready_count) == ([1], 2)
