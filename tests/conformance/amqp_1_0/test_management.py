"""OASIS AMQP Management, and AMQP 1.0, part 2, section 2.6: links to and from the management node."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import AccessRefused
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.sections import NULL, Properties
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach, Transfer
from services.gateway.protocols.amqp_1_0.termini import Target
from tests.support.amqp_1_0_playbook import Playbook, data, receiving, sending

NODE = "$management"


def transfer(number: int) -> Transfer:
    return Transfer(0, number, str(number).encode(), 0)


def asked_to_consume(book: Playbook) -> to_broker.Consume:
    return next(each for each in reversed(book.asked) if isinstance(each, to_broker.Consume))


def test_requests() -> None:
    """A link to the node is a link: each message is published to its address, and confirmed."""
    book = Playbook().sender(NODE)
    assert not [each for each in book.asked if isinstance(each, to_broker.FindNode)]
    request = composite.write(Properties(message_id="m", reply_to="replies", subject="not a key")) + data()
    [publish] = book.says(0, transfer(0), request)
    assert isinstance(publish, to_broker.Publish)
    [kind] = publish.kinds
    assert (kind.facts.exchange, kind.facts.routing_key, kind.mandatory) == ("", NODE, True)
    book.confirm(1, 1)
    [disposition] = book.answers()
    assert (disposition.first, disposition.state.symbol) == (0, "amqp:accepted:list")


def test_a_request_without_a_body() -> None:
    """Is taken, as proton writes it, though section 3.2 wants one; what is no message is not."""
    request = composite.write(Properties(message_id="m"))
    book = Playbook().sender(NODE)
    [publish] = book.says(0, transfer(0), request)
    assert isinstance(publish, to_broker.Publish)
    assert (publish.properties, publish.bodies) == ([request], [NULL])
    assert book.says(0, transfer(1), b"\0\x53\x01") == []
    [rejected] = book.answers()
    assert rejected.state.symbol == "amqp:rejected:list"


def test_who_may_not_publish() -> None:
    """Is refused the link, as at any other address."""
    book = Playbook().begun()
    book.refused[to_broker.Produce] = AccessRefused("not you")
    attach, detach = book.does(0, sending(NODE))
    assert (attach.target, detach.error.condition) == (None, "amqp:unauthorized-access")


@pytest.mark.parametrize(("target", "address"), [(Target("mine"), "mine"), (Target(), ""), (Target(7), ""), (None, "")])
def test_replies(target: Any, address: str) -> None:
    """A link from the node gets the replies that are addressed to what its client calls its own end."""
    book = Playbook().begun()
    attach = Attach("replies", 0, True, source=receiving(NODE).source, target=target)
    [attached] = book.does(0, attach)
    assert attached.source.address == NODE
    consume = asked_to_consume(book)
    assert (consume.queue, consume.replies_to, consume.by_credit) == (NODE, address, True)
    assert not [each for each in book.asked if isinstance(each, to_broker.FindNode | to_broker.DeclareQueue)]


def test_other_links_name_nothing() -> None:
    """The peer's address in a link to a queue is ignored."""
    book = Playbook().begun()
    book.does(0, Attach("replies", 0, True, source=receiving("q").source, target=Target("mine")))
    assert asked_to_consume(book).replies_to == ""


def test_the_end_of_replies() -> None:
    """Detaching such a link is cancelling its consumer, like any."""
    book = Playbook()
    tag = book.receiver(NODE)
    [detached] = book.does(0, Detach(0, True))
    assert isinstance(detached, Detach)
    assert book.asked[-1] == to_broker.Cancel(1, tag, link=1)
