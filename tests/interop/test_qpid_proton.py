"""qpid-proton, an AMQP 1.0 client of another project. Without it (python3-qpid-proton) these tests fail."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from tests.support.interop_pika import fetch
from tests.support.proton_client import Proton, running
from tests.support.rest import asking
from tests.support.stack import Stack, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress


@pytest.fixture
def proton(broker: BrokerAddress) -> Iterator[Proton]:
    """Connected by SASL PLAIN."""
    with running() as client:
        client.do("connect", url=f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}")
        yield client
        client.do("close")


@pytest.fixture
def queue(channel: BlockingChannel, name: str) -> Iterator[str]:
    channel.queue_declare(name, durable=True)
    yield name
    channel.queue_delete(name)


def test_from_a_queue_to_a_queue(proton: Proton, queue: str) -> None:
    """What is sent is accepted, and received as it was sent."""
    proton.do("sender", name="s", address=queue)
    for number in range(5):
        sent = proton.do(
            "send",
            name="s",
            body=f"hello {number}",
            id=number,
            durable=True,
            subject="greeting",
            properties={"n": number},
        )
        assert sent == {"outcome": "accepted"}
    proton.do("receiver", name="r", address=queue, credit=2)
    for number in range(5):
        received = proton.do("receive", name="r")
        assert (received["body"], received["id"], received["subject"]) == (f"hello {number}", number, "greeting")
        assert (received["properties"], received["durable"]) == ({"n": number}, True)
        proton.do("settle", name="r", how="accept")


@pytest.mark.parametrize(("how", "again"), [("accept", False), ("reject", False), ("release", True)])
def test_outcomes(proton: Proton, channel: BlockingChannel, queue: str, how: str, again: bool) -> None:
    """What is accepted or rejected is gone; what is released is there again, as if it had not been delivered."""
    proton.do("sender", name="s", address=queue)
    proton.do("send", name="s", body="x")
    proton.do("receiver", name="r", address=queue)
    proton.do("receive", name="r")
    proton.do("settle", name="r", how=how)
    if again:
        received = proton.do("receive", name="r")
        assert (received["delivery_count"], received["first_acquirer"]) == (0, False)
        proton.do("settle", name="r", how="accept")
    proton.do("end", name="r")
    assert channel.queue_declare(queue, passive=True).method.message_count == 0


def test_modified(proton: Proton, channel: BlockingChannel, queue: str) -> None:
    """What is said of a message comes with it, to clients of either protocol; another link gets what one does not."""
    proton.do("sender", name="s", address=queue)
    proton.do("send", name="s", body="x")
    proton.do("receiver", name="r", address=queue, credit=10)
    assert proton.do("receive", name="r")["annotations"] == {}
    said = {"x-opt-why": "late", "x-opt-times": 1}
    proton.do("modify", name="r", failed=True, annotations=said)
    received = proton.do("receive", name="r")
    assert (received["annotations"], received["delivery_count"]) == (said, 1)
    proton.do("modify", name="r", undeliverable=True, annotations={"x-opt-times": 2})
    proton.do("send", name="s", body="behind it")
    assert proton.do("receive", name="r")["body"] == "behind it"
    proton.do("receiver", name="other", address=queue)
    received = proton.do("receive", name="other")
    assert (received["annotations"], received["delivery_count"]) == ({"x-opt-why": "late", "x-opt-times": 2}, 1)
    proton.do("settle", name="other", how="release")
    proton.do("end", name="other")
    _, properties, body = fetch(channel, queue)
    assert properties.headers == {"x-opt-why": "late", "x-opt-times": 2}
    assert body.endswith(b"x")


def test_modified_over_0_9_1(proton: Proton, channel: BlockingChannel, queue: str) -> None:
    """A message of pika's has annotations, too."""
    channel.basic_publish("", queue, b"old", pika.BasicProperties(headers={"n": 1}, delivery_mode=2))
    proton.do("receiver", name="r", address=queue, credit=10)
    proton.do("receive", name="r")
    proton.do("modify", name="r", annotations={"x-opt-why": "late"})
    received = proton.do("receive", name="r")
    assert (received["annotations"], received["properties"]) == ({"x-opt-why": "late"}, {"n": 1})
    proton.do("settle", name="r", how="accept")


def test_settled_both_ways(proton: Proton, queue: str) -> None:
    """Messages sent settled, without waiting for an outcome, arrive as well."""
    proton.do("sender", name="s", address=queue, settled=True)
    for number in range(20):
        proton.do("send", name="s", body=str(number))
    proton.do("receiver", name="r", address=queue, credit=50, settled=True)
    assert [proton.do("receive", name="r")["body"] for _ in range(20)] == [str(number) for number in range(20)]


def test_through_an_exchange(proton: Proton, channel: BlockingChannel, queue: str, name: str) -> None:
    """By a key of the address, or by each message's subject; what reaches no queue is rejected."""
    exchange = f"{name}-topic"
    channel.exchange_declare(exchange, "topic", auto_delete=True)
    channel.queue_bind(queue, exchange, "orders.*")
    proton.do("sender", name="eu", address=f"{exchange}/orders.eu")
    proton.do("sender", name="any", address=exchange)
    assert proton.do("send", name="any", body="0", subject="unknown") == {"outcome": "rejected"}
    proton.do("receiver", name="all", address=f"{exchange}/#", credit=10)
    assert proton.do("send", name="eu", body="1") == {"outcome": "accepted"}
    assert proton.do("send", name="any", body="2", subject="orders.us") == {"outcome": "accepted"}
    assert [proton.do("receive", name="all")["body"] for _ in range(2)] == ["1", "2"]
    assert channel.queue_declare(queue, passive=True).method.message_count == 2
    proton.do("end", name="all")
    deadline = time.monotonic() + 10
    # The link's own queue goes soon after it, as any that deletes itself.
    while proton.do("send", name="any", body="3", subject="unknown") != {"outcome": "rejected"}:
        assert time.monotonic() < deadline


def test_a_queue_of_its_own(proton: Proton) -> None:
    """A dynamic source has an address for others to send to."""
    address = proton.do("receiver", name="replies", address=None, credit=5)["address"]
    proton.do("sender", name="s", address=address)
    proton.do("send", name="s", body="reply")
    assert proton.do("receive", name="replies")["body"] == "reply"


@pytest.mark.parametrize("lifetime", ["delete-on-no-messages", "delete-on-no-links-or-messages"])
def test_a_queue_until_it_is_empty(proton: Proton, channel: BlockingChannel, lifetime: str) -> None:
    """It outlives the link that has made it, and goes with the last message."""
    address = proton.do("receiver", name="r", address=None, lifetime=lifetime)["address"]
    proton.do("sender", name="s", address=address)
    proton.do("send", name="s", body="left")
    proton.do("end", name="r")
    method, _, _ = channel.basic_get(address)
    assert is_there(channel.connection, address)
    channel.basic_ack(method.delivery_tag)
    wait_until(lambda: not is_there(channel.connection, address), 30, "end of the queue")


def is_there(connection: pika.BlockingConnection, queue: str) -> bool:
    try:
        connection.channel().queue_declare(queue, passive=True)
    except ChannelClosedByBroker:
        return False
    return True


def test_drain(proton: Proton, queue: str) -> None:
    """Drain delivers waiting messages and uses up the rest of the credit: twice, and with an empty queue."""
    proton.do("sender", name="s", address=queue)
    for number in range(3):
        proton.do("send", name="s", body=str(number))
    proton.do("receiver", name="r", address=queue)
    assert proton.do("drain", name="r", credit=10) == {"came": 3}
    assert proton.do("drain", name="r", credit=5) == {"came": 3}
    proton.do("send", name="s", body="later")
    assert proton.do("drain", name="r", credit=1) == {"came": 4}


def test_large_messages(proton: Proton, queue: str) -> None:
    """Messages of many frames both ways."""
    proton.do("sender", name="s", address=queue)
    proton.do("send", name="s", body="0123456789", times=100_000)
    proton.do("receiver", name="r", address=queue)
    assert proton.do("receive", name="r")["body"] == "0123456789" * 100_000


@pytest.mark.parametrize("role", ["sender", "receiver"])
def test_no_such_node(proton: Proton, name: str, role: str) -> None:
    """A link to nothing is refused by its name; the connection goes on."""
    assert proton.fails(role, name="l", address=name) == {"error": "amqp:not-found"}
    assert proton.fails(role, name="m", address=name) == {"error": "amqp:not-found"}


def test_what_is_held_goes_back(proton: Proton, channel: BlockingChannel, queue: str) -> None:
    """A link that ends gives back what it has not settled."""
    proton.do("sender", name="s", address=queue)
    for _ in range(3):
        proton.do("send", name="s", body="x")
    proton.do("receiver", name="r", address=queue, credit=3)
    proton.do("receive", name="r")
    proton.do("end", name="r")
    assert channel.queue_declare(queue, passive=True).method.message_count == 3


def test_to_0_9_1(proton: Proton, channel: BlockingChannel, queue: str) -> None:
    """A client of 0-9-1 gets what both protocols have a name for."""
    proton.do("sender", name="s", address=queue)
    proton.do("send", name="s", body="text", id="m1", subject="kind", durable=True, properties={"a": 1, "b": "c"})
    message = fetch(channel, queue)
    assert message.body == b"text"
    properties = message.properties
    assert (properties.message_id, properties.type, properties.delivery_mode) == ("m1", "kind", 2)
    assert properties.headers == {"a": 1, "b": "c"}


def test_from_0_9_1(proton: Proton, channel: BlockingChannel, queue: str) -> None:
    """And the other way round."""
    properties = pika.BasicProperties(message_id="m1", type="kind", delivery_mode=2, headers={"a": 1})
    channel.basic_publish("", queue, b"text", properties)
    proton.do("receiver", name="r", address=queue)
    received = proton.do("receive", name="r")
    assert (received["body"], received["id"], received["subject"]) == ("text", "m1", "kind")
    assert (received["properties"], received["durable"]) == ({"a": 1}, True)


def test_a_wrong_password(broker: BrokerAddress) -> None:
    """It is refused, and said to be."""
    with running() as client:
        refused = client.fails("connect", url=f"amqp://guest:wrong@{broker.host}:{broker.port}")
    assert "Authentication failed" in refused["error"]


@pytest.mark.parametrize("own_port", [True, False])
def test_over_tls(
    broker: BrokerAddress, secure: BrokerAddress, certificate: Path, queue: str, *, own_port: bool
) -> None:
    """At TLS's port and at AMQP's, with the certificate and its name verified; a message of many records of TLS too."""
    port = secure.port if own_port else broker.port
    with running() as client:
        client.do("connect", url=f"amqps://{broker.user}:{broker.password}@localhost:{port}", trusted=str(certificate))
        client.do("sender", name="s", address=queue)
        assert client.do("send", name="s", body="much ", times=200_000) == {"outcome": "accepted"}
        client.do("receiver", name="r", address=queue, credit=1)
        assert client.do("receive", name="r")["body"] == "much " * 200_000
        client.do("settle", name="r", how="accept")
        client.do("close")


def bodies(channel: BlockingChannel, queue: str) -> list[bytes]:
    """What is in a queue, taken out."""
    found = []
    while (got := channel.basic_get(queue, auto_ack=True))[0]:
        found.append(got[2])
    return found


def test_transactions_that_take_turns(proton: Proton, channel: BlockingChannel, queue: str) -> None:
    """On one session one is committed, one rolled back, and one left open when its coordinator's link ends."""
    for body in ("taken a", "taken b", "taken c"):
        channel.basic_publish("", queue, body.encode())
    proton.do("sender", name="s", address=queue)
    proton.do("receiver", name="r", address=queue, credit=3)
    proton.do("coordinate")
    for each in "abc":
        proton.do("declare", name=each)
    for turn in "12":
        for each in "abc":
            posted = proton.do("post", transaction=each, name="s", body=f"{each}{turn}")
            assert posted == {"mine": True, "outcome": 0x24}
    for each in "abc":
        assert proton.do("receive", name="r")["body"] == f"taken {each}"
        proton.do("retire", transaction=each, name="r")
    assert proton.do("discharge", name="b", fail=True) == {"outcome": "accepted", "condition": None}
    assert proton.do("discharge", name="a") == {"outcome": "accepted", "condition": None}
    proton.do("end_control")
    proton.do("end", name="r")
    assert sorted(bodies(channel, queue)) == [b"a1", b"a2", b"taken b", b"taken c"]


def test_a_transaction_with_what_is_for_no_queue(proton: Proton, channel: BlockingChannel, name: str) -> None:
    """It says so at once, and is not committed: it would not be whole."""
    channel.exchange_declare(name, "direct", durable=True)
    proton.do("sender", name="s", address=f"{name}/nowhere")
    proton.do("coordinate")
    proton.do("declare", name="t")
    assert proton.do("post", transaction="t", name="s", body="x")["outcome"] == 0x25
    assert proton.do("discharge", name="t") == {"outcome": "rejected", "condition": "amqp:transaction:rollback"}
    channel.exchange_delete(name)


@contextmanager
def of_container(broker: BrokerAddress, container: str) -> Iterator[Proton]:
    """A client that is gone without a word at the end."""
    with running() as client:
        url = f"amqp://{broker.user}:{broker.password}@{broker.host}:{broker.port}"
        client.do("connect", url=url, container=container)
        yield client


def test_durable_subscription(broker: BrokerAddress, channel: BlockingChannel, name: str) -> None:
    """Its container is gone, and gets what came meanwhile when it is there again; REST lists it until it is closed."""
    [stack] = [each for each in Stack.running if each.address == broker]
    get, queue = asking(stack.http_port), f"qpidsub_/{name}_/news"
    channel.exchange_declare(name, "topic", durable=True)
    with of_container(broker, name) as client:
        client.do("receiver", name="news", address=f"{name}/a.*", durable=True)
    channel.basic_publish(name, "a.b", b"1")
    channel.basic_publish(name, "b.c", b"2")
    channel.basic_publish(name, "a.c", b"3")
    status, [told], _ = asyncio.run(get("/api/latest/queue?name=" + quote(queue, safe="")))
    assert (status, told["exclusive"], told["durable"]) == (200, "PRINCIPAL_CONTAINER", True)
    assert told["owner"] == f"guest/{name}"
    with of_container(broker, name) as client:
        client.do("receiver", name="news", address=f"{name}/a.*", durable=True, credit=10)
        for body in ("1", "3"):
            assert client.do("receive", name="news")["body"] == body
            client.do("settle", name="news", how="accept")
        client.do("end", name="news")
    listed = "/api/latest/queue?name=" + quote(queue, safe="")
    wait_until(lambda: asyncio.run(get(listed))[1] == [], 20, "a link that is closed is listed no more")
    channel.exchange_delete(name)
