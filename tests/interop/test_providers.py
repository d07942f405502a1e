"""Real clients, and each kind of authentication provider at a port of its own. Of Hopline's own stack alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import AMQPError, ConnectionClosedByBroker, ProbableAuthenticationError

from tests.interop.test_qpid_proton import running
from tests.support.certificates import Authority
from tests.support.interop_pika import connect, connected
from tests.support.issuer import Issuer, running_issuer
from tests.support.ports import free_port
from tests.support.slapd import SUFFIX, Slapd, running_slapd
from tests.support.stack import HOST, Stack, running_stack, wait_until

if TYPE_CHECKING:
    from tests.support.interop_address import BrokerAddress

HOPLINE = Path(sys.executable).with_name("hopline")
KINDS = ("internal", "file", "ldap", "oauth2", "composite")


class Ports:
    """A stack with a port for each provider."""

    def __init__(self, stack: Stack, slapd: Slapd, issuer: Issuer, folder: Path) -> None:
        self.stack, self.slapd, self.issuer = stack, slapd, issuer
        self.users = folder / "users"
        self.users.write_text("filed:filed's\n")
        self.numbers = {kind: free_port() for kind in KINDS}

    def hopline(self, *arguments: str, given: str = "") -> str:
        command = [HOPLINE, *arguments]
        environment = self.stack.command_environment()
        done = subprocess.run(
            command, check=False, input=given, text=True, capture_output=True, timeout=60, env=environment
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self) -> None:
        told: dict[str, dict[str, Any]] = {
            "file": {"path": str(self.users), "format": "plain"},
            "ldap": {
                "url": self.slapd.tls_url, "authorities": str(self.slapd.authorities),
                "user_dn": f"uid={{user}},ou=people,{SUFFIX}",
            },
            "oauth2": {"issuer": self.issuer.url, "audience": ["hopline"], "leeway": 0},
            "composite": {"providers": ["file", "internal"]},
        }  # fmt: skip
        for kind, options in told.items():
            sets = [part for name, value in options.items() for part in ("--set", f"{name}={json.dumps(value)}")]
            self.hopline("providers", "add", f"by-{kind}" if kind != "file" else "file-users", kind, *sets)
        self.hopline("providers", "add", "by-composite", "composite", "--set", 'providers=["file-users","internal"]')
        for kind, number in self.numbers.items():
            name = {"internal": "internal", "file": "file-users"}.get(kind, f"by-{kind}")
            self.hopline("ports", "add", kind, "--address", f"{HOST}:{number}", "--provider", name)

    def at(self, kind: str, user: str, password: str) -> BrokerAddress:
        return replace(self.stack.address, port=self.numbers[kind], user=user, password=password)

    def token(self, **claims: Any) -> str:
        return self.issuer.token(**claims)


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    if os.environ.get("HOPLINE_TEST_AMQP"):
        pytest.skip("providers are Hopline's")
    folder = tmp_path_factory.mktemp("providers")
    environment = {
        "HOPLINE_SASL_MECHANISMS": "PLAIN AMQPLAIN SCRAM-SHA-256 CRAM-MD5",
        "HOPLINE_QUEUE_PROCESSES": "1",
        "HOPLINE_ACCESS_CONTROL": "allow_all",
    }
    with (
        running_slapd(tmp_path_factory.mktemp("slapd"), Authority(folder)) as slapd,
        running_issuer() as issuer,
        running_stack(folder / "data", environment) as stack,
    ):
        made = Ports(stack, slapd, issuer, folder)
        made.make()
        for kind in KINDS:
            wait_until(lambda kind=kind: answers(made, kind), 20, f"port {kind}")
        yield made


def answers(ports: Ports, kind: str) -> bool:
    try:
        connect(ports.at(kind, "x", "x"))
    except ProbableAuthenticationError:
        return True
    except (AMQPError, OSError):
        return False
    return False


def _secret(ports: Ports, kind: str) -> tuple[str, str, str]:
    """Name, password, and the principal's name."""
    return {
        "internal": ("guest", "guest", "guest"),
        "file": ("filed", "filed's", "filed"),
        "ldap": ("alice", "alice's", "alice"),
        "oauth2": ("whoever", ports.token(sub="bearer"), "bearer"),
        "composite": ("guest", "guest", "guest"),
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_pika_by_plain(ports: Ports, kind: str) -> None:
    """Messages go through as the user that the provider names; a wrong password is refused as such."""
    user, password, name = _secret(ports, kind)
    with connected(ports.at(kind, user, password)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"hello", pika.BasicProperties(user_id=name))
        got = channel.basic_get(queue, auto_ack=True)
        assert (got[1].user_id, got[2]) == (name, b"hello")
    with pytest.raises(ProbableAuthenticationError, match="login was refused"):
        connect(ports.at(kind, user, f"{password}x"))


def test_a_user_of_one_is_none_of_another(ports: Ports) -> None:
    """Each port lets in those of its own provider."""
    for kind in ("file", "ldap", "oauth2"):
        with pytest.raises(ProbableAuthenticationError):
            connect(ports.at(kind, "guest", "guest"))


def test_a_directory_that_is_away(ports: Ports) -> None:
    """Is an error at its port; the others do not notice."""
    ports.slapd.stop()
    try:
        with pytest.raises(AMQPError) as refused:
            connect(ports.at("ldap", "bob", "bob's"))
        assert "does not answer" in repr(refused.value)
        with connected(ports.at("internal", "guest", "guest")):
            pass
    finally:
        ports.slapd.start()


def test_a_user_that_is_changed_or_deleted_is_disconnected(ports: Ports) -> None:
    """By a new password on record, a line of a file that is taken away, a provider that is removed."""
    ports.hopline("users", "add", "passing", "--password-file", "-", given="one")
    ports.hopline("providers", "add", "for-a-while", "anonymous")
    guest = ports.at("internal", "guest", "guest")
    with connected(ports.at("file", "filed", "filed's")) as filed, connected(guest) as stays:
        wait_until(lambda: _comes_in(ports, "passing", "one"), 20, "new user")
        with connected(ports.at("internal", "passing", "one")) as passing:
            ports.hopline("users", "change", "passing", "--password-file", "-", given="two")
            assert "user 'passing' was changed" in _end(passing)
        ports.users.write_text("another:x\n")
        assert "user 'filed' is deleted" in _end(filed)
        stays.process_data_events(0)
        assert stays.is_open
    ports.users.write_text("filed:filed's\n")
    wait_until(lambda: _comes_in(ports, "passing", "two"), 20, "new password")


def _comes_in(ports: Ports, user: str, password: str) -> bool:
    try:
        connect(ports.at("internal", user, password)).close()
    except AMQPError:
        return False
    return True


def _end(connection: pika.BlockingConnection) -> str:
    """The reason that the broker gives for it."""
    with pytest.raises(ConnectionClosedByBroker) as closed:
        _listen(connection)
    assert closed.value.reply_code == 320
    return str(closed.value.reply_text)


def _listen(connection: pika.BlockingConnection) -> None:
    for _ in range(100):
        connection.process_data_events(0.1)


def test_a_token_that_expires(ports: Ports) -> None:
    """Ends its connection, unless pika has said a newer one."""
    for renewed in (False, True):
        token = ports.token(exp=time.time() + 3)
        with connected(ports.at("oauth2", "whoever", token)) as connection:
            if renewed:
                connection.update_secret(ports.token(), "it is time")
                connection.process_data_events(4)
                assert connection.is_open
            else:
                assert "has expired" in _end(connection)


def test_qpid_proton(ports: Ports) -> None:
    """qpid-proton over AMQP 1.0, by PLAIN: Debian's knows neither CRAM-MD5 nor XOAUTH2."""
    with running() as proton:
        url = f"amqp://{HOST}:{ports.numbers['file']}"
        answer = proton.fails("connect", url=url, mechanisms="PLAIN", user="filed", password="filed's")
        assert "error" not in answer, answer
        proton.do("close")
