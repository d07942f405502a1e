"""What is sent on a channel is at fault: what was asked in front of it is answered before the channel is closed."""

from __future__ import annotations

from pamqp import commands

from services.common.errors import NotFound
from services.gateway.answers import QueueDeclared
from services.gateway.vocabulary import CloseSession, Request
from tests.support.amqp_playbook import Playbook, content, written

_FAULT = content(1, b"x", expiration="soon")
_DECLARE = written(1, commands.Queue.Declare(queue="q"))


def _refused(book: Playbook, before: bytes = _DECLARE) -> list[Request]:
    *asked, end = book.engine.receive(before + _FAULT)
    assert end == CloseSession(1)
    assert book.raw() == b""
    return [*asked, end]


def _names(book: Playbook) -> list[str]:
    return [value.name for _, value in book.sent()]


def test_answers_come_before_the_close() -> None:
    """1.4.2.5 channel.close says no more of what was asked before it; so that has been said."""
    book = Playbook().running()
    declare, end = _refused(book)
    book.engine.succeed(declare, QueueDeclared("q", 0, 0))
    assert _names(book) == ["Queue.DeclareOk"]
    book.engine.succeed(end)
    assert book.closed_channel() == (406, 60, 40)


def test_nothing_behind_it_is_asked() -> None:
    """Neither a method nor content, in this read or the next; other channels go on."""
    book = Playbook().running(1, 2)
    _, end = _refused(book)
    assert book.engine.receive(_DECLARE + content(1, b"y") + _FAULT) == []
    [other] = book.client(2, commands.Queue.Declare(queue="q"))
    assert other.session == 2
    book.engine.succeed(end)
    assert book.closed_channel() == (406, 60, 40)
    assert book.engine.receive(content(1, b"y") + written(1, commands.Channel.CloseOk())) == []
    assert isinstance(book.does(1, commands.Channel.Open()), commands.Channel.OpenOk)


def test_something_that_was_asked_before_it_fails() -> None:
    """The channel is closed for that, once."""
    book = Playbook().running()
    declare, end = _refused(book)
    book.engine.fail(declare, NotFound("no queue 'q'"))
    assert book.closed_channel() == (404, 50, 10)
    assert book.engine.pending_requests() == []
    book.engine.succeed(end)
    assert book.raw() == b""


def test_a_channel_that_is_not_open_yet() -> None:
    """open-ok comes first."""
    book = Playbook().opened()
    open_, end = book.engine.receive(written(1, commands.Channel.Open()) + _FAULT)
    book.engine.succeed(open_)
    book.engine.succeed(end)
    assert _names(book) == ["Channel.OpenOk", "Channel.Close"]


def test_the_client_closes_it_meanwhile() -> None:
    """It hears of the fault at once; the number can be opened again, whenever the broker has ended the session."""
    book = Playbook().running()
    _, end = _refused(book)
    assert book.client(1, commands.Channel.Close(200, "", 0, 0)) == []
    assert _names(book) == ["Channel.Close", "Channel.CloseOk"]
    book.client(1, commands.Channel.CloseOk())
    [opened] = book.client(1, commands.Channel.Open())
    book.engine.succeed(end)
    book.engine.succeed(opened)
    assert _names(book) == ["Channel.OpenOk"]


def test_nothing_of_it_counts_as_on_its_way_in() -> None:
    """Nor does what follows it."""
    book = Playbook().running()
    _refused(book, b"")
    book.engine.receive(content(1, b"y"))
    assert book.engine.incomplete == 0
