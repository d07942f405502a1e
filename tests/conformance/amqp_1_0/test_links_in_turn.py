"""AMQP 1.0, 2.7.6: what several links of a session hear of what they have sent, and that nothing is kept of it."""

from __future__ import annotations

import gc

from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import ACCEPTED, PublishDisposition
from services.gateway.protocols.amqp_1_0.states import Rejected
from services.gateway.sessions.publish_ticket import REFUSED
from tests.conformance.amqp_1_0.test_sending import published
from tests.support.amqp_1_0_playbook import Playbook, data, framed, sending, transfer


def test_links_in_turn() -> None:
    """Transfers of several links that come together are one request of each, and each hears of its own."""
    book = Playbook().sender()
    book.does(0, sending("x/key", 1))
    asked = book.receives(b"".join(framed(0, transfer(id_, id_ % 2), data(b"%d" % id_)) for id_ in range(6)))
    assert published(asked) == [("", "q", data(b"%d" % id_)) for id_ in (0, 2, 4)] + [
        ("x", "key", data(b"%d" % id_)) for id_ in (1, 3, 5)
    ]
    assert len(asked) == 2
    more = book.receives(framed(0, transfer(6, 1), data()))
    assert len(more) == 1
    book.confirm(2, 2, link=2, outcome=REFUSED)
    [refused] = book.answers()
    assert (refused.first, type(refused.state)) == (3, Rejected)
    book.engine.confirm(
        1,
        [
            PublishDisposition(1, 1, 3, ACCEPTED),
            PublishDisposition(2, 1, 1, ACCEPTED),
            PublishDisposition(2, 3, 4, ACCEPTED),
        ],
    )
    assert [(each.first, each.last) for each in book.answers()] == [(0, 2), (4, 6)]


def test_links_in_turn_where_ids_begin_again() -> None:
    """Behind the greatest delivery-id comes 0: one disposition, from there on (2.8.8)."""
    book = Playbook().sender()
    book.does(0, sending("x/key", 1))
    ids = [(1 << 32) - 2 + at for at in range(4)]
    book.receives(b"".join(framed(0, transfer(id_ % (1 << 32), id_ % 2), data()) for id_ in ids))
    book.engine.confirm(1, [PublishDisposition(2, 1, 2, ACCEPTED), PublishDisposition(1, 1, 2, ACCEPTED)])
    assert [each.first for each in book.answers()] == [(1 << 32) - 2, 0]


def test_nothing_is_kept_of_what_is_told() -> None:
    """A client that rests takes no memory for what it has sent, whether its link is there or not."""
    book = Playbook().sender()
    body = data(b"what nobody else has")
    assert len(book.receives(framed(0, transfer(0), body))) == 1
    book.asked.clear()
    book.confirm(1, 1, link=1)
    kept = [each for each in gc.get_objects() if isinstance(each, to_broker.Publish)]
    assert not [each for each in kept if body in each.bodies]
