"""rabbitmq-c by its tools amqp-publish and amqp-consume. Without them (package amqp-tools) these tests fail."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.support.interop_pika import fetch

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress

SECONDS = 30


def run(command: list[str], text: str = "") -> str:
    """What `command` prints; fails when it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def publish(broker: BrokerAddress, *options: str, text: str = "") -> None:
    run(["amqp-publish", "--url", broker.url(), *options], text)


def test_publish_with_properties(broker: BrokerAddress, channel: BlockingChannel, name: str) -> None:
    """Body, headers and properties that amqp-publish sends arrive."""
    channel.queue_declare(name)
    publish(broker, "-r", name, "-p", "-C", "text/plain", "-t", "answers", "-H", "colour: red", "-b", "from C")
    message = fetch(channel, name)
    assert message.body == b"from C"
    properties = message.properties
    assert (properties.delivery_mode, properties.content_type, properties.reply_to) == (2, "text/plain", "answers")
    assert properties.headers == {"colour": "red"}
    channel.queue_delete(name)


def test_publish_to_missing_exchange_fails(broker: BrokerAddress, name: str) -> None:
    """amqp-publish learns that its exchange does not exist, by an error or by exit status."""
    command = ["amqp-publish", "--url", broker.url(), "-e", name, "-r", "x", "-b", "y"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode != 0
    assert "404" in done.stderr


def test_consume_by_lines(broker: BrokerAddress, channel: BlockingChannel, name: str) -> None:
    """Lines published one by one are consumed with prefetch and acks, in order."""
    channel.queue_declare(name)
    lines = [f"line {number}" for number in range(20)]
    publish(broker, "-r", name, "-l", text="\n".join(lines) + "\n")
    consumed = run(["amqp-consume", "--url", broker.url(), "-q", name, "-c", "20", "-p", "3", "cat"])
    assert consumed.replace("\n", "") == "".join(lines)
    assert channel.queue_declare(name, passive=True).method.message_count == 0
    channel.queue_delete(name)


def test_consume_from_exchange(broker: BrokerAddress, channel: BlockingChannel, name: str) -> None:
    """amqp-consume declares an exclusive queue, binds it to an exchange, and gets what is published there."""
    channel.confirm_delivery()
    channel.exchange_declare(name, "topic", auto_delete=True)
    options = ["-x", "-q", f"{name}-mine", "-e", name, "-r", "a.*", "-c", "1"]
    process = subprocess.Popen(["amqp-consume", "--url", broker.url(), *options, "cat"], stdout=subprocess.PIPE)
    try:
        _publish_until_done(channel, name, process)
        assert process.communicate(timeout=SECONDS)[0] == b"now"
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_wrong_credentials(broker: BrokerAddress) -> None:
    """Wrong credentials are an error with the broker's words, not an endless wait."""
    command = ["amqp-publish", "--url", broker.url(password="wrong"), "-r", "x", "-b", "y"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode != 0
    assert "403" in done.stderr


def _publish_until_done(channel: BlockingChannel, exchange: str, process: subprocess.Popen[bytes]) -> None:
    # The tool does not say when it has bound its queue.
    for _ in range(100):
        channel.basic_publish(exchange, "a.b", b"now")
        channel.connection.process_data_events(time_limit=0.1)
        if process.poll() is not None:
            return
