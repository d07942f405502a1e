"""What a link has asked for is never taken for another's: handles, channels and names come again at once."""

from __future__ import annotations

from services.common.errors import ResourceError
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.performatives import Attach, Begin, Detach, End
from tests.support.amqp_1_0_playbook import Playbook, data, receiving, sending, transfer


def test_a_publish_fails_of_a_link_whose_handle_another_has() -> None:
    """We have ended the former one, and its peer has heard of that: the next one has not failed."""
    book = Playbook().sender()
    [publish] = book.says(0, transfer(1), data())
    book.says(0, transfer(2, more=True), data()[:4])
    [detach] = book.does(0, transfer(3), data())
    assert detach.error.condition == "amqp:invalid-field"
    book.waits = {to_broker.FindNode}
    book.says(0, Detach(0, True))
    [find] = book.says(0, sending())
    assert find.link != publish.link
    book.engine.fail(publish, ResourceError("no"))
    book.serve(find)
    attach, flow = book.answers()
    assert isinstance(attach, Attach)
    assert flow.link_credit


def test_tags_come_never_again() -> None:
    """A session may have the number of one that is still ending, and links of the same names."""
    book = Playbook()
    first = book.receiver()
    book.does(0, End())
    book.does(0, Begin(None, 0, 10, 10))
    *_, consume = book.says(0, receiving())
    assert isinstance(consume, to_broker.Consume)
    assert consume.tag != first
