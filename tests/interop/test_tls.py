"""TLS as clients speak it: pika, aio-pika, rabbitmq-c, and OpenSSL's own."""

from __future__ import annotations

import ssl
import subprocess
from typing import TYPE_CHECKING

import aio_pika
import pika
import pytest

from tests.support.interop_pika import connect, fetch

if TYPE_CHECKING:
    from pathlib import Path

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress

SECONDS = 30


@pytest.fixture(params=["own port", "AMQP's port"])
def port(request: pytest.FixtureRequest, broker: BrokerAddress, secure: BrokerAddress) -> BrokerAddress:
    """TLS is spoken at both."""
    return secure if request.param == "own port" else broker


def test_pika(port: BrokerAddress, certificate: Path, name: str) -> None:
    """Publishes with confirms and gets, ten megabytes at once too."""
    context = ssl.create_default_context(cafile=str(certificate))
    connection = connect(port, ssl_options=pika.SSLOptions(context, "localhost"))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(name, durable=True)
    for body in (b"small", b"x" * (10 << 20)):
        channel.basic_publish("", name, body, pika.BasicProperties(delivery_mode=2))
        assert fetch(channel, name).body == body
    channel.queue_delete(name)
    connection.close()


async def test_aio_pika(port: BrokerAddress, certificate: Path, name: str) -> None:
    """Fifty publishes are under way at once, and all come."""
    url = port.url().replace("amqp://", "amqps://").replace("127.0.0.1", "localhost") + f"?cafile={certificate}"
    async with await aio_pika.connect(url, timeout=SECONDS) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(name, exclusive=True)
        for number in range(50):
            await channel.default_exchange.publish(aio_pika.Message(str(number).encode()), name)
        found = [(await queue.get()).body for _ in range(50)]
    assert found == [str(number).encode() for number in range(50)]


def test_rabbitmq_c(secure: BrokerAddress, certificate: Path, channel: BlockingChannel, name: str) -> None:
    """A message that it publishes over TLS another client gets without."""
    channel.queue_declare(name)
    url = f"amqps://{secure.user}:{secure.password}@localhost:{secure.port}/%2F"
    command = ["amqp-publish", "--url", url, "--ssl", "--cacert", str(certificate), "-r", name, "-b", "from C"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert fetch(channel, name).body == b"from C"
    channel.queue_delete(name)


def s_client(port: BrokerAddress, *options: str, text: str = "") -> str:
    """What OpenSSL says of a connection."""
    command = ["openssl", "s_client", "-connect", f"{port.host}:{port.port}", *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(("version", "spoken"), [("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)])
def test_versions(port: BrokerAddress, certificate: Path, version: str, spoken: bool) -> None:
    """TLS 1.2 and 1.3 are spoken; the certificate is verified by clients that trust it."""
    said = s_client(port, version, "-CAfile", str(certificate), "-cipher", "DEFAULT:@SECLEVEL=0")
    assert ("Verify return code: 0 (ok)" in said and "Cipher is (NONE)" not in said) == spoken


def test_renegotiation(port: BrokerAddress) -> None:
    """Is refused: a client could ask for one handshake after the other."""
    assert "no renegotiation" in s_client(port, "-tls1_2", text="R\n").lower()
