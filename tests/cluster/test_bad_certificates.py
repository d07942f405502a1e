"""Certificate files that cannot be used: from the start, or in place of good ones. Health says so, all else serves."""

from __future__ import annotations

import ssl
from contextlib import closing
from pathlib import Path

import pika
import pytest
from pika.exceptions import AMQPConnectionError

from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.stack import HOST, Stack, running_stack, wait_until

SECONDS = 20.0


def note(stack: Stack) -> str:
    return str(stack.health().get("notes", {}).get("ports", ""))


def connect(port: int, authority: Authority | None = None) -> None:
    options = pika.SSLOptions(authority.client(), "localhost") if authority else None
    with closing(pika.BlockingConnection(pika.ConnectionParameters(HOST, port, ssl_options=options))):
        pass


def test_bad_files(tmp_path: Path) -> None:
    """The port for TLS waits until its file is good, and serves on when that goes bad; health tells both."""
    authority, amqps = Authority(tmp_path), free_port()
    path = tmp_path / "broker.pem"
    path.write_text("nonsense")
    tls = {"HOPLINE_TLS_CERTIFICATE": str(path), "HOPLINE_AMQPS_PORT": str(amqps)}
    with running_stack(tmp_path / "data", tls) as stack:
        why = f"{path}: there is no certificate, or no key, in it, in PEM"
        wait_until(lambda: "is not open" in note(stack), SECONDS, "note of a port that is not open")
        assert f"amqps ({HOST}:{amqps}) is not open: {why}" in note(stack)
        gateways = {name: state for name, state in stack.health()["members"]["gateway"].items() if state != "ok"}
        assert gateways == {}
        pid = stack.pid("gateway")
        connect(stack.address.port)
        with pytest.raises((AMQPConnectionError, OSError)):
            connect(amqps, authority)
        authority.sign("broker", ["localhost"])
        wait_until(lambda: note(stack) == "", SECONDS, "a port that is open")
        connect(amqps, authority)
        other = authority.sign("other").read_text().partition("-----BEGIN PRIVATE KEY")
        path.write_text(path.read_text().partition("-----BEGIN PRIVATE KEY")[0] + "".join(other[1:]))
        wait_until(lambda: "another certificate's" in note(stack), SECONDS, "note of a key that does not match")
        assert f"amqps ({HOST}:{amqps}): {path}: the key is another certificate's; the former certificate" in note(
            stack
        )
        assert stack.is_healthy()
        connect(amqps, authority)
        connect(stack.address.port, authority)
        assert stack.pid("gateway") == pid


def test_a_refused_handshake_says_why(tmp_path: Path) -> None:
    """A client that begins with TLS at AMQP's own port is refused while there is no certificate; the log has why."""
    path = tmp_path / "broker.pem"
    tls = {"HOPLINE_TLS_CERTIFICATE": str(path), "HOPLINE_AMQPS_PORT": str(free_port())}
    with running_stack(tmp_path / "data", tls) as stack:
        with pytest.raises((AMQPConnectionError, ssl.SSLError, OSError)):
            connect(stack.address.port, Authority(tmp_path))
        wait_until(lambda: "TLS handshake failed" in stack.log_tail(), SECONDS, "line of the log")
        assert f"{path}: No such file or directory" in stack.log_tail()
