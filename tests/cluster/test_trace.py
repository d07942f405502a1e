"""A message is followed through a whole stack: by what the ledger has on record, live, and before it is sent."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pika
import pytest

from services.common.dry_run import DryRun
from services.common.trace import Trace
from tests.support.hopline_command import HoplineCommand
from tests.support.stack import Stack, wait_until

SECONDS = 20.0
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def hopline(stack: Stack) -> Hopline:
    return Hopline(stack)


class Hopline(HoplineCommand):
    """The command line, and what it says."""

    def trace(self, asked: str) -> Trace:
        return Trace.model_validate_json(self.run("trace", asked, "--json").stdout)

    def follow(self, queue: str, output: Path, *options: str) -> subprocess.Popen[bytes]:
        with output.open("wb") as file:
            command = [self.command, "trace", "--follow", queue, *options]
            return subprocess.Popen(command, env=self.environment, stdout=file, stderr=file)


@pytest.fixture
def connection(stack: Stack) -> Iterator[pika.BlockingConnection]:
    with closing(pika.BlockingConnection(pika.ConnectionParameters(stack.address.host, stack.address.port))) as opened:
        yield opened


def _declare(connection: pika.BlockingConnection, name: str) -> None:
    """A queue `name` whose dead letters go to `name`-dead, by the exchange `name`-dlx."""
    channel = connection.channel()
    channel.exchange_declare(f"{name}-dlx", "fanout")
    channel.queue_declare(f"{name}-dead", durable=True)
    channel.queue_bind(f"{name}-dead", f"{name}-dlx")
    channel.queue_declare(name, durable=True, arguments={"x-dead-letter-exchange": f"{name}-dlx"})
    channel.queue_bind(name, "amq.topic", f"{name}.#")
    channel.close()


def _reject_and_accept(connection: pika.BlockingConnection, name: str) -> None:
    """Publishes a message that is put back, rejected, and accepted as a dead letter."""
    channel = connection.channel()
    channel.confirm_delivery()
    headers = {"traceparent": f"00-{TRACE_ID}-00f067aa0ba902b7-01"}
    properties = pika.BasicProperties(message_id=f"{name}-1", correlation_id=name, delivery_mode=2, headers=headers)
    channel.basic_publish("amq.topic", f"{name}.new", b"x", properties)
    for requeue in (True, False):
        method, _, _ = next(channel.consume(name))
        channel.basic_reject(method.delivery_tag, requeue=requeue)
    channel.cancel()
    method, _, _ = next(channel.consume(f"{name}-dead"))
    channel.basic_ack(method.delivery_tag)
    channel.close()


def _stages(trace: Trace) -> set[str]:
    """What is on record of the message that was published."""
    return {step.stage for step in trace.journeys[0].messages[0].steps}


def _address(connection: pika.BlockingConnection) -> str:
    """The client's own end of its socket."""
    host, port, *_ = connection._impl._transport._sock.getsockname()
    return f"{host}:{port}"


def test_who_got_it(hopline: Hopline, stack: Stack, connection: pika.BlockingConnection, name: str) -> None:
    """For a message fetched by basic.get the client is shown: name, user, address; and it is found by them."""
    host, port = stack.address.host, stack.address.port
    channel = connection.channel()
    channel.queue_declare(name, exclusive=False)
    channel.basic_publish("", name, b"x", pika.BasicProperties(message_id=name))
    named = pika.ConnectionParameters(host, port, client_properties={"connection_name": f"{name}-desk"})
    with closing(pika.BlockingConnection(named)) as other:
        fetching = other.channel()
        wait_until(lambda: fetching.basic_get(name, auto_ack=True)[0], SECONDS, "a message")
        address = _address(other)
    found = ("--queue", name, "--consumer", address, "--client", "guest")
    wait_until(lambda: hopline.run("trace", *found).returncode == 0, SECONDS, "a delivery on record")
    shown = hopline.run("trace", name).stdout
    assert f"basic.get by {name}-desk (user guest, {address})" in shown
    [sent] = [step for step in hopline.trace(name).journeys[0].messages[0].steps if step.stage == "sent"]
    assert (sent.client, sent.user, sent.peer, sent.consumer) == (f"{name}-desk", "guest", address, "")


def test_whole_way(hopline: Hopline, connection: pika.BlockingConnection, name: str) -> None:
    """By any of its ids, a message's stages are told, through redelivery and dead-lettering, to its end."""
    _declare(connection, name)
    _reject_and_accept(connection, name)
    wait_until(lambda: "\nended: accepted" in hopline.run("trace", f"{name}-1").stdout, SECONDS, "a whole way")
    by_gateway = {"received", "routed", "confirmed", "sent"}  # which tells it by itself, sooner or later than its owner
    wait_until(lambda: by_gateway <= _stages(hopline.trace(f"{name}-1")), SECONDS, "what its gateway tells")
    trace = hopline.trace(f"{name}-1")
    [published, dead] = trace.journeys[0].messages
    stages = [(step.stage, step.outcome or step.reason) for step in published.steps if step.service == "queue"]
    assert [each for each in stages if each[0] != "persisted"] == [
        ("enqueued", ""),
        ("delivered", ""),
        ("requeued", "released"),
        ("delivered", ""),
        ("settled", "rejected"),
        ("dead_lettered", "rejected"),
    ]
    assert {step.stage for step in published.steps} >= {"received", "routed", "persisted", "confirmed", "sent"}
    assert [copy.queue for copy in published.copies] == [name]
    assert (dead.predecessor, dead.ended) == (published.uid, True)
    assert [(copy.queue, copy.state, copy.outcome) for copy in dead.copies] == [(f"{name}-dead", "settled", "accepted")]
    publisher, *_ = published.steps
    assert (publisher.user, publisher.peer) == ("guest", _address(connection))
    for asked in (name, TRACE_ID, str(published.uid), str(dead.uid)):
        messages = hopline.trace(asked).journeys[0].messages
        assert [message.uid for message in messages] == [published.uid, dead.uid]


def test_live(hopline: Hopline, connection: pika.BlockingConnection, name: str, tmp_path: Path) -> None:
    """`hopline trace --follow` tells what happens in a queue while it happens; Ctrl-C ends it silently."""
    _declare(connection, name)
    output = tmp_path / "followed"
    following = hopline.follow(name, output)
    channel = connection.channel()

    def is_followed() -> bool:
        channel.basic_publish("", name, b"x", pika.BasicProperties(message_id="order-1"))
        return "enqueued" in output.read_text()

    wait_until(is_followed, SECONDS, "a line")
    wait_until(lambda: "order-1" in output.read_text(), SECONDS, "the message's id")
    following.send_signal(signal.SIGINT)
    assert following.wait(10) == 0
    assert "Traceback" not in output.read_text()


def test_live_of_one_client(
    hopline: Hopline, stack: Stack, connection: pika.BlockingConnection, name: str, tmp_path: Path
) -> None:
    """It picks messages by their publisher's address or user, also of connections that are much older."""
    _declare(connection, name)
    parameters = pika.ConnectionParameters(stack.address.host, stack.address.port)
    with closing(pika.BlockingConnection(parameters)) as other:
        channels = {"own": connection.channel(), "others": other.channel()}

        def publish() -> None:
            for whose, channel in channels.items():
                channel.basic_publish("", name, b"x", pika.BasicProperties(message_id=whose))

        publish()
        wait_until(lambda: hopline.run("trace", "others").returncode == 0, SECONDS, "both on record")
        outputs = {who: tmp_path / str(number) for number, who in enumerate((_address(connection), "guest", "nobody"))}
        followers = [hopline.follow(name, output, "--client", who) for who, output in outputs.items()]

        def are_followed() -> bool:
            publish()
            texts = [output.read_text() for output in outputs.values()]
            return "own" in texts[0] and "own" in texts[1] and "others" in texts[1]

        wait_until(are_followed, SECONDS, "lines")
    for following in followers:
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == 0
    of_address, _, of_nobody = (output.read_text() for output in outputs.values())
    assert "others" not in of_address
    assert of_nobody == ""


def test_dry_run(hopline: Hopline, connection: pika.BlockingConnection, name: str) -> None:
    """`hopline route` tells where a message would go, and none goes there."""
    _declare(connection, name)
    run = hopline.run("route", "--exchange", "amq.topic", "--key", f"{name}.new", "--json")
    dry = DryRun.model_validate_json(run.stdout)
    assert dry.queues == [name]
    assert [hop.routing_key for hop in dry.visits[0].hops] == [f"{name}.#"]
    assert connection.channel().queue_declare(name, passive=True).method.message_count == 0
    assert hopline.run("route", "--exchange", name).returncode == 1


def test_nothing_on_record(hopline: Hopline, name: str) -> None:
    """An id that no message has is reported in a line."""
    found = hopline.run("trace", name)
    assert (found.returncode, found.stdout, found.stderr) == (1, "", f"nothing is on record of '{name}'\n")


def test_what_has_just_been_published(hopline: Hopline, connection: pika.BlockingConnection, name: str) -> None:
    """Rows take about a second: a look-up waits for them before it says that there are none."""
    _declare(connection, name)
    connection.channel().basic_publish("", name, b"new", pika.BasicProperties(message_id=name))
    assert hopline.run("trace", name).returncode == 0
