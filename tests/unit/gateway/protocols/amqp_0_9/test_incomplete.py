"""What an engine says it keeps of messages that have not come whole is what they take of memory."""

from __future__ import annotations

from pamqp import commands

from services.common.errors import PreconditionFailed
from tests.support.amqp_playbook import Playbook, content


def test_small_frames_count_as_what_they_take() -> None:
    """A body in frames of two bytes takes a multiple of its size, and so do properties without a body."""
    book = Playbook().running()
    whole = content(1, bytes(2000), frame_size=2)
    book.engine.receive(whole[:-10])
    assert book.engine.incomplete > 999 * 60
    book.engine.receive(whole[-10:])
    assert book.engine.incomplete == 0
    head = content(1, b"x" * 10, message_id="i" * 250)
    book.engine.receive(head[:-18])
    assert book.engine.incomplete > 250
    book.engine.receive(head[-18:])
    assert book.engine.incomplete == 0


def test_a_channel_that_is_closed_keeps_nothing() -> None:
    """What had come for a message is forgotten with its channel, and what still comes of it is not kept."""
    book = Playbook().running()
    declare = book.asks(1, commands.Queue.Declare(queue="q"))
    whole = content(1, bytes(90), frame_size=10)
    book.engine.receive(whole[:-36])
    assert book.engine.incomplete > 0
    book.engine.fail(declare, PreconditionFailed("no"))
    assert book.engine.incomplete == 0
    book.engine.receive(whole[-36:])
    assert book.engine.incomplete == 0
