"""basic.cancel from the broker, RabbitMQ's extension consumer_cancel_notify: when it comes."""

from __future__ import annotations

from pamqp import commands

from services.common.errors import PreconditionFailed
from services.gateway import vocabulary as v
from tests.support.amqp_playbook import Playbook

_DELETE = commands.Queue.Delete(queue="q")


def _names(book: Playbook) -> list[tuple[int, str]]:
    return [(channel, value.name) for channel, value in book.sent()]


def test_delete_ok_comes_before_the_cancels_that_it_caused() -> None:
    """On the channel that deletes: it knows why, and reads its answer first. Every consumer hears, once."""
    book = Playbook().running()
    delete = book.asks(1, _DELETE)
    for tag in ("a", "b"):
        book.engine.cancelled(1, tag)
    assert book.raw() == b""
    book.engine.succeed(delete, 7)
    (_, answer), (_, first), (_, second) = book.sent()
    assert isinstance(answer, commands.Queue.DeleteOk)
    assert [first.name, second.name] == ["Basic.Cancel", "Basic.Cancel"]
    assert [first.consumer_tag, second.consumer_tag] == ["a", "b"]
    book.does(1, _DELETE, 0)


def test_other_channels_hear_at_once() -> None:
    """They have asked for nothing; nor does a channel wait that asks for something else."""
    book = Playbook().running(1, 2)
    book.asks(1, _DELETE)
    book.asks(2, commands.Queue.Declare(queue="other"))
    book.engine.cancelled(2, "c")
    assert _names(book) == [(2, "Basic.Cancel")]


def test_without_an_answer_the_cancels_come_all_the_same() -> None:
    """no-wait asks for no delete-ok."""
    book = Playbook().running()
    delete = book.asks(1, commands.Queue.Delete(queue="q", nowait=True))
    book.engine.cancelled(1, "c")
    book.engine.succeed(delete, 0)
    assert _names(book) == [(1, "Basic.Cancel")]


def test_a_channel_that_ends_hears_no_cancel() -> None:
    """Neither when it is closed behind the delete nor when the delete is refused."""
    book = Playbook().running(1, 2)
    delete, close = book.client(1, _DELETE, commands.Channel.Close(200, "", 0, 0))
    refused = book.asks(2, _DELETE)
    for channel in (1, 2):
        book.engine.cancelled(channel, "c")
    book.engine.succeed(delete, 0)
    book.engine.succeed(close)
    book.engine.fail(refused, PreconditionFailed("queue 'q' in use"))
    assert book.engine.pending_requests() == [v.CloseSession(2)]
    assert _names(book) == [(1, "Queue.DeleteOk"), (1, "Channel.CloseOk"), (2, "Channel.Close")]
