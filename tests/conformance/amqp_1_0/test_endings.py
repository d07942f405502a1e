"""Links and sessions that end while something is under way, and numbers that come again at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from services.common.errors import AccessRefused, ConnectionForced, NotAllowed, ResourceError
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import UNSENT
from services.gateway.protocols.amqp_1_0.performatives import Attach, Begin, Detach, End, Flow, Transfer
from tests.support.amqp_1_0_playbook import Playbook, data, framed, receiving, sending, transfer


def _waiting(book: Playbook, kind: type[Any]) -> Any:
    """The last request of a kind, which the broker has not answered."""
    return next(each for each in reversed(book.asked) if isinstance(each, kind))


def _credit(link_credit: int, handle: int = 0) -> Flow:
    return Flow(0, 1 << 20, 0, 1, handle, 0, link_credit)


def test_a_handle_is_free_after_the_peers_detach() -> None:
    """Section 2.7.7: another link may have it at once, while the broker still ends the former; each has its answer."""
    book = Playbook()
    book.receiver()
    book.waits = {to_broker.Cancel}
    [attach] = book.does(0, Detach(0, True)) or book.does(0, sending("x", 0))[:1]
    assert (attach.name, attach.handle) == ("to x", 1)  # our handle 0 is still the former one's
    book.serve(_waiting(book, to_broker.Cancel))
    assert book.answers() == [Detach(0, True)]
    book.says(0, transfer(1, 0), data())
    assert _waiting(book, to_broker.Publish).link == 2
    assert book.does(0, Detach(0, True)) == []
    book.confirm(1, 1, link=2)
    assert isinstance(book.answers()[-1], Detach)


def test_handles_of_links_whose_end_takes_its_time_are_bounded() -> None:
    """A client that attaches and detaches without end gets an error, and keeps its other links."""
    book = Playbook().begun()
    book.waits = {to_broker.FindNode}
    for _ in range(1024):
        book.says(0, receiving("q", 0))
        book.says(0, Detach(0, True))
    [end] = book.does(0, receiving("q", 0))
    assert isinstance(end, End)
    assert end.error.condition == "amqp:resource-limit-exceeded"


def test_nothing_is_sent_on_a_link_that_has_ended() -> None:
    """What the broker had on its way for it is for others, at once."""
    book = Playbook()
    tag = book.receiver()
    book.says(0, _credit(10))
    book.waits = {to_broker.Cancel}
    book.says(0, Detach(0, True))
    book.deliver(tag, 1, b"a", b"b")
    assert book.answers() == []
    assert _waiting(book, to_broker.Settle) == to_broker.Settle(1, 1, 2, UNSENT)


def test_nothing_is_sent_behind_our_own_detach() -> None:
    """A link that we have ended has no handle any more: a transfer there would end the session."""
    book = Playbook()
    tag = book.receiver()
    book.says(0, _credit(10))
    book.waits = {to_broker.Cancel}
    book.engine.fail(_waiting(book, to_broker.Credit), ResourceError("no"))
    [detach] = book.answers()
    assert detach.error.condition == "amqp:resource-limit-exceeded"
    book.deliver(tag, 1, b"a")
    assert book.answers() == []


def test_a_publish_fails_on_a_link_that_its_peer_has_ended() -> None:
    """One detach answers the peer's; its handle is free, and nothing more is said of it."""
    book = Playbook().sender()
    book.says(0, transfer(1), data())
    publish = _waiting(book, to_broker.Publish)
    assert book.does(0, Detach(0, True)) == []
    book.engine.fail(publish, ResourceError("no"))
    [detach] = book.answers()
    assert (detach.handle, detach.error.condition) == (0, "amqp:resource-limit-exceeded")
    attach, _ = book.does(0, sending("q", 0))
    assert attach.handle == 0


def test_nothing_is_said_of_links_on_a_session_that_we_have_ended() -> None:
    """Their attach was under way at the broker: its answer comes behind our end, where the peer knows of no session."""
    book = Playbook().begun()
    book.waits = {to_broker.FindNode}
    book.says(0, receiving("q", 0))
    [end] = book.does(0, Detach(7, True))
    assert end.error.condition == "amqp:session:unattached-handle"
    book.serve(_waiting(book, to_broker.FindNode))
    assert book.answers() == []
    assert not any(isinstance(each, to_broker.Consume) for each in book.asked)


def test_begin_comes_before_end() -> None:
    """Section 2.5.1, also for a session whose first frames are wrong, and come with its begin."""
    book = Playbook().opened()
    book.waits = {to_broker.OpenSession}
    book.receives(framed(0, Begin(None, 0, 10, 10)) + framed(0, Detach(3, True)))
    assert book.answers() == []
    book.serve(_waiting(book, to_broker.OpenSession))
    begin, end = book.answers()
    assert isinstance(begin, Begin)
    assert end.error.condition == "amqp:session:unattached-handle"
    assert book.does(0, End()) == []
    book.waits = set()
    assert isinstance(book.does(0, Begin(None, 0, 10, 10))[0], Begin)


def test_a_session_that_the_broker_refuses() -> None:
    """It is begun, and ended with the reason."""
    book = Playbook().opened()
    book.refused = {to_broker.OpenSession: ResourceError("too many")}
    begin, end = book.does(0, Begin(None, 0, 10, 10))
    assert isinstance(begin, Begin)
    assert end.error.condition == "amqp:resource-limit-exceeded"


def test_a_channel_is_free_after_the_peers_end() -> None:
    """Section 2.5.5: the next session may have it at once. What is said of the number until then is the former's."""
    book = Playbook().sender()
    book.says(0, transfer(1), data())
    book.waits = {to_broker.CloseSession, to_broker.OpenSession}
    assert book.does(0, End()) == []
    assert book.does(0, Begin(None, 0, 10, 10)) == []
    book.confirm(1, 1)
    [disposition] = book.answers()
    assert disposition.first == 1
    book.serve(_waiting(book, to_broker.CloseSession))
    assert book.answers() == [End()]
    book.serve(_waiting(book, to_broker.OpenSession))
    [begin] = book.answers()
    assert begin.remote_channel == 0
    book.waits = set()
    attach, _ = book.does(0, sending())
    assert isinstance(attach, Attach)


def test_a_delivery_begins_before_another_is_whole() -> None:
    """Section 2.6.14: frames of two deliveries do not mix on a link. They are not taken for one message."""
    book = Playbook().sender()
    book.says(0, transfer(1, more=True), data()[:4])
    [detach] = book.does(0, transfer(2), data()[4:])
    assert detach.error.condition == "amqp:invalid-field"
    assert not any(isinstance(each, to_broker.Publish) for each in book.asked)
    assert book.engine.incomplete == 0


def test_a_delivery_goes_on_under_its_id() -> None:
    """Frames behind the first may say it again."""
    book = Playbook().sender()
    book.says(0, transfer(1, more=True), data()[:4])
    book.says(0, Transfer(0, 1), data()[4:])
    assert _waiting(book, to_broker.Publish).bodies == [data()]


def test_sessions_end_when_we_close_the_connection() -> None:
    """Section 2.4.3: nothing is sent behind our close. The broker hears that nobody is there, or it would go on."""
    book = Playbook()
    tag = book.receiver()
    book.says(0, _credit(10))
    book.engine.close(ConnectionForced("shutdown"))
    [end] = book.engine.pending_requests()
    assert end == to_broker.EndSessions(0)
    book.serve(end)
    book.answers()
    book.deliver(tag, 1, b"a")
    assert book.answers() == []
    book.engine.close(ConnectionForced("again"))
    assert book.engine.pending_requests() == []


def test_nothing_is_kept_of_sessions_that_are_refused() -> None:
    """The broker answers nothing that is asked of them, however often a client tries."""
    book = Playbook().opened()
    book.refused = {to_broker.OpenSession: NotAllowed("limit")}
    book.waits = {to_broker.FindNode, to_broker.CloseSession}
    for number in range(3):
        book.receives(framed(0, Begin(None, 0, 10, 10)) + framed(0, sending("q", number)))
        assert [type(each) for each in book.answers()] == [Begin, End]
        assert book.does(0, End()) == []
    assert book.engine._peer.links == {}
    assert not any(isinstance(each, to_broker.CloseSession) for each in book.asked)
    assert book.engine._peer.asked == {}


def test_nothing_is_kept_of_what_a_session_asked_that_we_have_ended() -> None:
    """The broker drops what waits behind the request that failed."""
    book = Playbook().begun()
    book.waits = {to_broker.FindNode}
    for handle in range(3):
        book.says(0, receiving("q", handle))
    book.does(0, Detach(7, True))
    assert book.engine._peer.asked == {}


def test_little_is_kept_of_a_session_whose_peer_says_nothing_more() -> None:
    """We have ended it, and its peer need not answer: links that waited would keep all that their attaches say."""
    book = Playbook()
    tag = book.receiver()
    book.says(0, _credit(10))
    book.deliver(tag, 1, b"a", b"b")
    book.waits = {to_broker.FindNode}
    book.says(0, receiving("q", 1))
    book.says(0, sending("q", 2))
    book.does(0, Detach(7, True))
    [session] = book.engine._sessions.values()
    assert (session._links, session._ours, session._consumers, session.deliveries._unsettled) == ({}, {}, {}, {})
    assert (book.engine._peer.links, book.engine._peer.asked) == ({}, {})


def test_a_publish_of_a_former_session_fails() -> None:
    """It was refused, its peer has ended it, and begun another one with a link on its channel: that has not failed."""
    book = Playbook().sender()
    book.says(0, transfer(1), data())
    publish = _waiting(book, to_broker.Publish)
    book.waits = {to_broker.OpenSession, to_broker.CloseSession, to_broker.FindNode}
    book.does(0, Detach(7, True))
    book.says(0, End())
    book.says(0, Begin(None, 0, 10, 10))
    book.says(0, sending())
    book.engine.fail(publish, AccessRefused("no"))
    [detach] = book.answers()
    assert detach.error.condition == "amqp:unauthorized-access"
    book.serve(_waiting(book, to_broker.CloseSession))
    [end] = book.answers()
    assert end.error.condition == "amqp:session:unattached-handle"
    book.serve(_waiting(book, to_broker.OpenSession))
    assert [type(each) for each in book.answers()] == [Begin]


def test_a_publish_fails_on_a_session_that_we_have_ended() -> None:
    """Nothing is said of its link behind our end."""
    book = Playbook().sender()
    book.says(0, transfer(1), data())
    publish = _waiting(book, to_broker.Publish)
    book.does(0, Detach(7, True))
    book.engine.fail(publish, ResourceError("no"))
    assert book.answers() == []


@pytest.mark.parametrize("refused", [to_broker.Bind, to_broker.Consume])
def test_a_link_from_an_exchange_is_refused(refused: type[Any]) -> None:
    """Its queue, which has had no consumer, would be there for as long as the connection."""
    book = Playbook().begun()
    book.refused = {refused: AccessRefused("no")}
    _, detach = book.does(0, receiving("x"))
    assert detach.error.condition == "amqp:unauthorized-access"
    assert _waiting(book, to_broker.DropQueue).name == "own"
    book.refused = {}
    book.does(0, receiving("x", 1))
    book.does(0, Detach(1, True))
    assert len([each for each in book.asked if isinstance(each, to_broker.DropQueue)]) == 1


@pytest.mark.parametrize("attach", [sending, receiving])
def test_a_link_is_attached_again(attach: Any) -> None:
    """Section 2.6.1: its name is one link's; who attaches it elsewhere, on any session, has given up the former."""
    book = Playbook().begun()
    book.begun(1)
    book.does(0, attach("q"))
    stolen, *attached = book.sent_by(1, replace(attach("q", 3), name=attach("q").name))
    assert (stolen[0], stolen[1].handle, stolen[1].error.condition) == (0, 0, "amqp:link:stolen")
    assert isinstance(attached[0][1], Attach)
    assert book.does(0, Detach(0, True)) == []
    [again, *_] = book.does(0, attach("q"))  # and back
    assert again.error.condition == "amqp:link:stolen"


def test_names_of_links_that_have_ended() -> None:
    """Of those nothing is stolen; either end of a link may have the name."""
    book = Playbook().begun()
    for handle, attach in enumerate((sending, receiving, sending)):
        answers = book.does(0, replace(attach("q", handle), name="n"))
        assert not any(isinstance(each, Detach) for each in answers)
        if attach is sending:
            book.does(0, Detach(handle, True))
    assert list(book.engine._peer.links) == [(True, "n")]
    book.does(0, End())
    assert book.engine._peer.links == {}


def test_a_link_is_attached_again_before_it_is_answered() -> None:
    """The former one is refused, and what the broker says of it afterwards attaches nothing."""
    book = Playbook().begun()
    book.waits = {to_broker.Consume}
    book.says(0, receiving("q"))
    consume = _waiting(book, to_broker.Consume)
    book.waits = set()
    attach, detach, again = book.does(0, replace(receiving("q", 1), name=receiving("q").name))
    assert (attach.handle, attach.source, detach.handle) == (0, None, 0)
    assert (again.handle, again.source.address) == (1, "q")
    book.serve(consume)
    assert book.answers() == []
    assert to_broker.Cancel(1, consume.tag, link=1) in book.asked


def test_begin_comes_before_what_is_refused_at_once() -> None:
    """Section 2.5.1: a client need not wait for our begin, and hears of nothing before it."""
    book = Playbook().opened()
    book.waits = {to_broker.OpenSession}
    book.receives(framed(0, Begin(None, 0, 10, 10)) + framed(0, sending(None)) + framed(0, Flow(0, 1, 0, 1, echo=True)))
    assert book.answers() == []
    book.serve(_waiting(book, to_broker.OpenSession))
    assert [type(each) for each in book.answers()] == [Begin, Attach, Detach, Flow]


def test_what_waits_for_our_begin_is_bounded() -> None:
    """A former session of the channel may be busy for long."""
    book = Playbook().opened()
    book.waits = {to_broker.OpenSession}
    book.says(0, Begin(None, 0, 10, 10))
    for _ in range(3000):
        book.says(0, Flow(0, 1, 0, 1, echo=True))
    book.serve(_waiting(book, to_broker.OpenSession))
    begin, *flows, end = book.answers()
    assert isinstance(begin, Begin)
    assert len(flows) < 2100
    assert end.error.condition == "amqp:resource-limit-exceeded"


def test_handles_that_the_peer_takes() -> None:
    """Section 2.7.2, handle-max: where none is free the session ends, as where we have none."""
    book = Playbook().opened()
    book.does(0, Begin(None, 0, 10, 10, handle_max=1))
    [attach] = book.does(0, receiving("q", 7))
    assert attach.handle == 0
    book.waits = {to_broker.Cancel}
    book.does(0, Detach(7, True))
    [attach] = book.does(0, receiving("q", 7))
    assert attach.handle == 1
    [end] = book.does(0, receiving("q", 0))
    assert end.error.condition == "amqp:resource-limit-exceeded"


def test_nothing_is_kept_of_a_session_that_has_ended() -> None:
    """Not of a drain either, which its consumer took with it."""
    book = Playbook()
    book.receiver()
    book.waits = {to_broker.Credit}
    book.says(0, Flow(0, 1 << 20, 0, 1, 0, 0, 5, drain=True))
    assert book.does(0, End()) == [End()]
    assert book.engine._peer.asked == {}
