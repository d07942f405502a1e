"""Many requests in one read are given in portions, so that one peer's do not hold up all others'."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from pamqp import commands

from services.gateway.protocols.amqp_0_9 import batches
from services.gateway.vocabulary import DeclareQueue, Publish
from tests.support.amqp_playbook import Playbook, content, written
from tests.support.raw_amqp import frame

_MOST = 50


def test_a_read_full_of_requests_comes_in_portions() -> None:
    """All of them, in their order, however many lie in one read; `unread` says that there are more."""
    book = Playbook().running()
    data = b"".join([written(1, commands.Queue.Declare(queue=f"q{number}")) for number in range(1000)])
    requests = book.engine.receive(data[:-5])
    portions = [len(requests)]
    while book.engine.unread:
        requests += (portion := book.engine.receive(b""))
        portions.append(len(portion))
    requests += book.engine.receive(data[-5:])
    assert max(portions) <= _MOST
    assert not book.engine.unread
    assert [each.name for each in requests if isinstance(each, DeclareQueue)] == [
        f"q{number}" for number in range(1000)
    ]


def test_more_bytes_come_behind_what_is_unread() -> None:
    """What is read meanwhile does not overtake it."""
    book = Playbook().running()
    declares = b"".join([written(1, commands.Queue.Declare(queue="q")) for _ in range(2 * _MOST)])
    requests = book.engine.receive(declares)
    assert book.engine.unread
    assert book.engine.incomplete == 0  # nothing that the peer would have to send
    requests += book.engine.receive(content(1, b"last"))
    while book.engine.unread:
        requests += book.engine.receive(b"")
    assert len(requests) == 2 * _MOST + 1
    assert isinstance(requests[-1], Publish)


def test_publishes_that_lie_together_are_one_portion() -> None:
    """They cost little, each, and are handed on together."""
    book = Playbook().running()
    data = b"".join([content(1, b"x", routing_key=f"q{number}") for number in range(5 * _MOST)])
    assert sum(len(each.bodies) for each in book.engine.receive(data) if isinstance(each, Publish)) == 5 * _MOST
    assert not book.engine.unread


@pytest.mark.parametrize("differ", [False, True], ids=["alike", "ids"])
def test_publishes_on_many_channels_in_turn_come_in_portions(differ: bool) -> None:
    """Each channel has a request; all come, in their order on each, and not too many at once."""
    channels = range(1, 3 * batches.MOST)
    book, said = Playbook().running(*channels), list[tuple[int, bytes]]()
    for number in range(10 * len(channels)):
        said.append((channels[number % len(channels)], b"%d" % number))
    data = b"".join([content(at, body, message_id=body.decode() if differ else None) for at, body in said])
    requests = book.engine.receive(data)
    portions = [len(requests)]
    while book.engine.unread:
        requests += (portion := book.engine.receive(b""))
        portions.append(len(portion))
    assert max(portions) <= batches.MOST
    publishes = [each for each in requests if isinstance(each, Publish)]
    assert all(each.bodies for each in publishes)
    bodies = [(each.session, body) for each in publishes for body in each.bodies]
    assert sorted(bodies, key=itemgetter(0)) == sorted(said, key=itemgetter(0))


def test_headers_that_have_to_be_walked_over_come_in_portions() -> None:
    """Names that are not ASCII take a look each: a read full of such takes long, whatever is little in each message."""
    book, count = Playbook().running(), 400
    data = b""
    for number in range(count):
        turn, at = divmod(number, 100)
        table = b"\2\xc3\xa9V" * at + b"\0b" + bytes((turn,)) + b"\2\xc3\xa9V" * (100 - at)
        properties = b"\x20\0" + len(table).to_bytes(4, "big") + table
        header = frame(2, 1, b"\0\x3c\0\0" + (1).to_bytes(8, "big") + properties)
        data += written(1, commands.Basic.Publish(routing_key="q")) + header + written(1, b"x")
    assert len(data) < 256 << 10
    portions = [sum(len(each.bodies) for each in book.engine.receive(data) if isinstance(each, Publish))]
    efforts = [book.engine.effort]
    while book.engine.unread:
        portions.append(sum(len(each.bodies) for each in book.engine.receive(b"") if isinstance(each, Publish)))
        efforts.append(book.engine.effort)
    assert sum(portions) == count
    assert len(portions) > 5
    assert max(efforts) < 6000


def test_headers_of_a_task_come_in_one_portion() -> None:
    """As Celery writes them, none with the lengths of another: they take no more of a read's time than others."""
    book, count = Playbook().running(), 300
    data = b"".join(
        [content(1, b"x", headers=_task(number), correlation_id=f"{number:036}") for number in range(count)]
    )
    assert len(data) < 256 << 10
    [request] = book.engine.receive(data)
    assert isinstance(request, Publish)
    assert len(request.bodies) == count
    assert not book.engine.unread


def _task(number: int) -> dict[str, Any]:
    empty = dict.fromkeys(("shadow", "eta", "expires", "group", "group_index", "parent_id", "stamped_headers"))
    said = {"lang": "py", "task": "tasks.add", "id": f"{number:036}", "argsrepr": "1, " * (number % 50), "stamps": {}}
    return {**empty, **said, "timelimit": [None, None], "ignore_result": False, "retries": number}


def test_a_close_behind_unread_requests_is_heard() -> None:
    """After the broker has ended the connection, what is unread asks for nothing, and close-ok is found behind it."""
    book = Playbook().running()
    declares = b"".join([written(1, commands.Queue.Declare(queue="q")) for _ in range(5 * _MOST)])
    book.engine.receive(declares + written(0, commands.Connection.Close(200, "", 0, 0)))
    assert book.engine.unread
    requests = []
    while book.engine.unread:
        requests += book.engine.receive(b"")
    assert type(requests[-1]).__name__ == "Close"
