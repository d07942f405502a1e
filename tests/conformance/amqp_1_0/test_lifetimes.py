"""Nodes that a link makes, and until when they are there (part 3, sections 3.5.3, 3.5.4 and 3.5.10 to 3.5.13)."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import AccessRefused, Unavailable
from services.common.message.amqp_1_0 import values as v
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach, End
from services.gateway.protocols.amqp_1_0.termini import Source, Target
from tests.support.amqp_1_0_playbook import Playbook

POLICY = v.Symbol("lifetime-policy")
LIFETIMES = [
    (0x2B, "amqp:delete-on-close:list", "link"),
    (0x2C, "amqp:delete-on-no-links:list", "no-links"),
    (0x2D, "amqp:delete-on-no-messages:list", "no-messages"),
    (0x2E, "amqp:delete-on-no-links-or-messages:list", "no-links-or-messages"),
]


def asked(policy: Any, *, sends: bool, handle: int = 0, **fields: Any) -> Attach:
    """An attach for a new node, in which messages come or from which they go."""
    properties = None if policy is None else {POLICY: policy}
    node = {"dynamic": True, "dynamic_node_properties": properties, **fields}
    source, target = (Source(), Target(**node)) if sends else (Source(**node), Target())
    return Attach("l", handle, not sends, source=source, target=target, initial_delivery_count=0 if sends else None)


def node_of(attach: Attach, *, sends: bool) -> Any:
    return attach.target if sends else attach.source


def declared(book: Playbook) -> to_broker.DeclareQueue:
    """What the broker was asked for last."""
    return next(each for each in reversed(book.asked) if isinstance(each, to_broker.DeclareQueue))


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize(("code", "name", "lifetime"), LIFETIMES)
def test_lifetimes(code: int, name: str, lifetime: str, sends: bool, by_name: bool) -> None:
    """Each is asked of the broker, for the link, and told to the peer; what outlives the link is anybody's."""
    book = Playbook().begun()
    policy = v.Described(v.Symbol(name) if by_name else v.ULong(code), [])
    attach, *_ = book.does(0, asked(policy, sends=sends))
    node = node_of(attach, sends=sends)
    assert (node.address, node.dynamic, node.dynamic_node_properties) == ("own", True, {POLICY: policy})
    queue = declared(book)
    assert (queue.lifetime, queue.exclusive, queue.auto_delete) == (lifetime, lifetime == "link", False)
    *_, detach = book.does(0, Detach(0, True))
    assert isinstance(detach, Detach)
    assert book.asked[-1] == to_broker.CloseLink(1, link=queue.link)


@pytest.mark.parametrize("sends", [True, False])
def test_none_is_asked_for(sends: bool) -> None:
    """Then it goes with its link."""
    book = Playbook().begun()
    attach, *_ = book.does(0, asked(None, sends=sends))
    assert node_of(attach, sends=sends).address == "own"
    queue = declared(book)
    assert (queue.lifetime, queue.exclusive, queue.auto_delete) == (
        ("link", True, False) if sends else ("", True, True)
    )


@pytest.mark.parametrize("sends", [True, False])
def test_arguments(sends: bool) -> None:
    """Other properties of the node are arguments of the queue, but for how it is shared out (3.5.9)."""
    book = Playbook().begun()
    said = {
        v.Symbol("supported-dist-modes"): v.Symbol("move"),
        v.Symbol("x-max-length"): v.ULong(5),
        v.Symbol("alternateBinding"): {"destination": "dead"},
    }
    end = {"dynamic": True, "dynamic_node_properties": said}
    source, target = (Source(), Target(**end)) if sends else (Source(**end), Target())
    book.does(0, Attach("l", 0, not sends, source=source, target=target, initial_delivery_count=0 if sends else None))
    assert declared(book).arguments == {"x-max-length": 5, "alternateBinding": {"destination": "dead"}}


@pytest.mark.parametrize("sends", [True, False])
def test_temporary_queues(sends: bool) -> None:
    """A client of JMS has its queue for its connection alone, whichever lifetime it asks for."""
    book = Playbook().begun()
    policy = v.Described(v.ULong(0x2D), [])
    book.does(0, asked(policy, sends=sends, capabilities=(v.Symbol("temporary-queue"),)))
    assert (declared(book).lifetime, declared(book).exclusive) == ("no-messages", True)


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize(
    "policy", ["delete-on-close", 0x2B, v.Described(v.ULong(0x2F), []), v.Described(v.UInt(0x2B), []), [1]]
)
def test_no_lifetime(policy: Any, sends: bool) -> None:
    """What is none is refused, and nothing is made."""
    book = Playbook().begun()
    attach, detach = book.does(0, asked(policy, sends=sends))
    assert node_of(attach, sends=sends) is None
    assert detach.error.condition == "amqp:invalid-field"
    assert not any(isinstance(each, to_broker.DeclareQueue) for each in book.asked)


@pytest.mark.parametrize("refused", [to_broker.Produce, to_broker.Consume])
def test_made_in_vain(refused: type[to_broker.Request]) -> None:
    """A link that cannot be leaves nothing behind."""
    book = Playbook().begun()
    book.refused = {refused: AccessRefused("no")}
    _, detach = book.does(0, asked(v.Described(v.ULong(0x2C), []), sends=refused is to_broker.Produce))
    assert detach.error.condition == "amqp:unauthorized-access"
    assert book.asked[-1] == to_broker.CloseLink(1, link=declared(book).link)


@pytest.mark.parametrize("sends", [True, False])
def test_an_answer_that_is_lost(sends: bool) -> None:
    """The node may be there: it is let go of, though the link was refused."""
    book = Playbook().begun()
    book.refused = {to_broker.DeclareQueue: Unavailable("no router")}
    _, detach = book.does(0, asked(v.Described(v.ULong(0x2C), []), sends=sends))
    assert detach.error is not None
    ends = [each for each in book.asked if isinstance(each, to_broker.CloseLink)]
    assert ends == [to_broker.CloseLink(1, link=declared(book).link)]


@pytest.mark.parametrize("sends", [True, False])
def test_an_end_that_nobody_hears(sends: bool) -> None:
    """The peer is answered all the same: with its session the node goes at the latest."""
    book = Playbook().begun()
    book.does(0, asked(v.Described(v.ULong(0x2B), []), sends=sends))
    book.refused = {to_broker.CloseLink: Unavailable("no router")}
    *_, detach = book.does(0, Detach(0, True))
    assert (detach.handle, detach.error) == (0, None)


@pytest.mark.parametrize("sends", [True, False])
def test_with_its_session(sends: bool) -> None:
    """A session that ends takes it along, and its links ask for nothing more."""
    book = Playbook().begun()
    book.does(0, asked(v.Described(v.ULong(0x2B), []), sends=sends))
    assert book.does(0, End()) == [End()]
    assert not any(isinstance(each, to_broker.CloseLink) for each in book.asked)


@pytest.mark.parametrize("sends", [True, False])
def test_a_session_that_ends_meanwhile(sends: bool) -> None:
    """The broker's answer comes to nobody."""
    book = Playbook().begun()
    book.waits = {to_broker.DeclareQueue}
    book.says(0, asked(v.Described(v.ULong(0x2C), []), sends=sends))
    book.says(0, End())
    book.serve(declared(book))
    assert not any(isinstance(each, to_broker.CloseLink) for each in book.asked)


@pytest.mark.parametrize("sends", [True, False])
def test_a_link_that_is_given_up(sends: bool) -> None:
    """Attached again before its node was there: what was made for the former is let go of, and nothing of the next."""
    book = Playbook().begun()
    book.waits = {to_broker.DeclareQueue}
    policy = v.Described(v.ULong(0x2B), [])
    book.says(0, asked(policy, sends=sends))
    former = declared(book)
    book.says(0, asked(policy, sends=sends, handle=1))
    book.waits = set()
    book.serve(former)
    assert to_broker.CloseLink(1, link=former.link) in book.asked
    book.serve(declared(book))
    assert to_broker.CloseLink(1, link=declared(book).link) not in book.asked
