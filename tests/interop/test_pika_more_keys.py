"""pika sends to many with one publish: RabbitMQ's sender-selected distribution, headers CC and BCC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker, UnroutableError

from tests.support.interop_pika import Message, fetch, is_empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel


def to(**headers: Any) -> pika.BasicProperties:
    return pika.BasicProperties(headers=headers, delivery_mode=2)


@pytest.fixture
def queues(channel: BlockingChannel, name: str) -> Iterator[list[str]]:
    """Three durable queues, and confirms."""
    channel.confirm_delivery()
    names = [f"{name}-{letter}" for letter in "abc"]
    for each in names:
        channel.queue_declare(each, durable=True)
    yield names
    if channel.is_open:
        for each in names:
            channel.queue_delete(each)


def fetched(channel: BlockingChannel, queues: list[str]) -> list[Message]:
    """One message from each queue, in which there is no other."""
    messages = [fetch(channel, queue) for queue in queues]
    assert all(is_empty(channel, queue) for queue in queues)
    return messages


def test_every_queue_gets_one(channel: BlockingChannel, queues: list[str]) -> None:
    """However often a queue is named; CC is delivered, BCC is not, and the routing key is that of the publish."""
    first, second, third = queues
    headers = {"n": 1, "CC": [second, first, second, "nobody"], "BCC": [third, second]}
    channel.basic_publish("", first, b"hello", to(**headers), mandatory=True)
    for message in fetched(channel, queues):
        assert message.body == b"hello"
        assert message.method.routing_key == first
        assert message.properties.headers == {"n": 1, "CC": [second, first, second, "nobody"]}


def test_a_single_hidden_key(channel: BlockingChannel, queues: list[str]) -> None:
    """Of headers that were BCC alone nothing is told, and the routing key itself may lead nowhere."""
    channel.basic_publish("", "nobody", b"hidden", to(BCC=[queues[0]]), mandatory=True)
    [message] = fetched(channel, queues[:1])
    assert (message.method.routing_key, message.properties.headers) == ("nobody", {})


def test_returned_when_no_queue_gets_it(channel: BlockingChannel, queues: list[str]) -> None:
    """A mandatory message comes back when none of its keys leads anywhere, as others may see it."""
    with pytest.raises(UnroutableError) as raised:
        channel.basic_publish("", "x", b"nobody", to(CC=["y"], BCC=["z"]), mandatory=True)
    [returned] = raised.value.messages
    assert (returned.method.reply_code, returned.method.routing_key) == (312, "x")
    assert returned.properties.headers == {"CC": ["y"]}
    assert all(is_empty(channel, queue) for queue in queues)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"CC": "a"}, '"CC",longstr'),
        ({"BCC": {"a": "b"}}, '"BCC",table'),
        ({"CC": ["a"], "BCC": 1}, '"BCC",signedint'),
    ],
)
def test_what_is_no_array(channel: BlockingChannel, queues: list[str], headers: dict[str, Any], reason: str) -> None:
    """It ends the channel: 406, in RabbitMQ's words."""
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.basic_publish("", queues[0], b"bad", to(**headers))
    text = f"PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,{reason}}}"
    assert (raised.value.reply_code, raised.value.reply_text) == (406, text)


def test_alternate_exchange(channel: BlockingChannel, queues: list[str], name: str) -> None:
    """It gets what none of the keys leads anywhere with, and that alone."""
    direct, rest, _ = queues
    channel.exchange_declare(f"{name}-rest", "fanout", auto_delete=True)
    channel.exchange_declare(name, arguments={"alternate-exchange": f"{name}-rest"})
    channel.queue_bind(rest, f"{name}-rest")
    channel.queue_bind(direct, name, "k")
    channel.basic_publish(name, "nobody", b"found", to(CC=["k"]), mandatory=True)
    channel.basic_publish(name, "nobody", b"not found", to(CC=["nobody else"]), mandatory=True)
    assert [message.body for message in fetched(channel, [direct, rest])] == [b"found", b"not found"]
    channel.exchange_delete(name)


def test_exchanges_behind_exchanges(channel: BlockingChannel, queues: list[str], name: str) -> None:
    """Each looks at all keys, whichever led there; a headers exchange at what is left of the headers."""
    direct, headers, hidden = queues
    channel.exchange_declare(name, "topic", auto_delete=True)
    channel.exchange_declare(f"{name}-next", "direct", auto_delete=True)
    channel.queue_bind(direct, f"{name}-next", "k")
    channel.queue_bind(headers, "amq.headers", arguments={"CC": None, name: 1})
    channel.queue_bind(hidden, "amq.headers", arguments={"BCC": None, name: 1})
    for destination in (f"{name}-next", "amq.headers"):
        channel.exchange_bind(destination, name, "up.#")
    for _ in range(3):
        channel.basic_publish(name, "no.where", b"x", to(CC=["k", "up.there"], BCC=[], **{name: 1}), mandatory=True)
    assert [message.body for queue in (direct, headers) for message in [fetch(channel, queue)] * 3] == [b"x"] * 6
    assert is_empty(channel, hidden)


def test_transactions(channel: BlockingChannel, queues: list[str], connection: pika.BlockingConnection) -> None:
    """All of the queues have it when it is committed, and none when it is rolled back."""
    transaction = connection.channel()
    transaction.tx_select()
    for body, end in ((b"no", transaction.tx_rollback), (b"yes", transaction.tx_commit)):
        transaction.basic_publish("", queues[0], body, to(CC=[queues[1]], BCC=[queues[2]]))
        assert all(is_empty(channel, queue) for queue in queues)
        end()
    assert [message.body for message in fetched(channel, queues)] == [b"yes"] * 3


def test_dead_letters(channel: BlockingChannel, queues: list[str], name: str) -> None:
    """They go by routing key and CC, as their history tells; by the queue's own key alone if it has one, without CC."""
    for key in (None, queues[0]):
        arguments = {"x-dead-letter-exchange": "", **({"x-dead-letter-routing-key": key} if key else {})}
        channel.queue_declare(name, arguments=arguments)
        channel.basic_publish("", "nobody", b"dead", to(CC=[name, queues[0], queues[1]]), mandatory=True)
        if key is None:  # the routing key of what is routed on by CC
            assert fetch(channel, queues[1]).method.routing_key == "nobody"
        assert fetch(channel, queues[0]).body == b"dead"
        channel.basic_reject(channel.basic_get(name)[0].delivery_tag, requeue=False)
        message = fetch(channel, queues[0])
        headers = message.properties.headers
        assert headers["x-death"][0]["routing-keys"] == ["nobody", name, queues[0], queues[1]]
        assert (headers.get("CC"), message.method.routing_key) == (
            (None, key) if key else ([name, queues[0], queues[1]], "nobody")
        )
        fetch(channel, queues[1])
        channel.queue_delete(name)


def test_replies(channel: BlockingChannel, connection: pika.BlockingConnection, name: str) -> None:
    """A reply reaches all requesters whose addresses are among its keys."""
    channel.queue_declare(name, auto_delete=True)
    replies: list[tuple[int, bytes]] = []
    for number in range(2):
        requester = connection.channel()
        requester.basic_consume(
            "amq.rabbitmq.reply-to", lambda *its, n=number: replies.append((n, its[3])), auto_ack=True
        )
        requester.basic_publish("", name, b"?", pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
    first, second = [fetch(channel, name).properties.reply_to for _ in range(2)]
    channel.basic_publish("", first, b"!", to(CC=[second]))
    while len(replies) < 2:
        connection.process_data_events(10)
    assert sorted(replies) == [(0, b"!"), (1, b"!")]
    channel.queue_delete(name)


def test_very_many_keys(channel: BlockingChannel, queues: list[str]) -> None:
    """As many as there may be: those that lead somewhere are found among them."""
    many = [f"{number:05}" for number in range(498)]
    channel.basic_publish("", "nobody", b"many", to(CC=[*many[:250], queues[0]], BCC=[*many[250:], queues[1]]))
    assert [message.body for message in fetched(channel, queues[:2])] == [b"many"] * 2


def test_a_dead_letter_with_very_many_keys(channel: BlockingChannel, queues: list[str], name: str) -> None:
    """It goes by all of them, as one message."""
    channel.queue_declare(name, arguments={"x-dead-letter-exchange": ""})
    channel.basic_publish("", name, b"many", to(CC=[f"{number:05}" for number in range(499)] + queues[:1]))
    fetched(channel, queues[:1])
    channel.basic_reject(channel.basic_get(name)[0].delivery_tag, requeue=False)
    assert fetch(channel, queues[0]).body == b"many"
    channel.queue_delete(name)
