"""No secret where it does not belong: a stack over TCP is used in every way that needs one, then all is searched."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import grpc
import pika
import pytest
from pika.exceptions import AMQPError

from services.common import secret
from services.common.authentication.attempts import OF_USER_THERE
from services.common.secrets_key import KeyPlace
from services.rpc import store_pb2
from services.rpc.store_pb2_grpc import StoreStub
from tests.support.amqp_playbook import HEADER
from tests.support.filed_ledger import FiledLedger
from tests.support.interop_address import BrokerAddress
from tests.support.interop_pika import connect, connected, fetch
from tests.support.issuer import running_issuer
from tests.support.ports import free_port
from tests.support.raw_amqp import EMPTY, method, short
from tests.support.secrecy import forms, in_files, in_processes, in_text
from tests.support.stack import HOST, Stack, running_stack, wait_until

HOPLINE = Path(sys.executable).with_name("hopline")
_RUN = uuid.uuid4().hex
PASSWORDS = {
    who: f"{who}-keeps-this-{_RUN}"
    for who in (
        "first",
        "by-file",
        "by-input",
        "changed",
        "wrong",
        "stranger",
        "malformed",
        "renewed",
        "recoverable",
        "directory",
        "listed",
    )
}
SECRETS = {**{who: forms(who, password) for who, password in PASSWORDS.items()}, "stack": [], "nats": []}
# The environment of `hopline up`; mgmt, which makes the first user, gets it where no other user can look.
PROCESSES = {("first", "hopline up", "environ")}
# NATS reads from a file of its own what it wants to hear.
FILES = {("stack", "run/secret"), ("nats", "nats/auth.conf")}
# Of what is encrypted there is a key, in a place apart from the store's database.
# What the log says of all that was tried.
AUDITED = ("signed in", "refused", "denied", "changed")
EVENTS = (
    "a directory does not answer",
    "login was refused",
    "too many wrong passwords",
    "new secret is wrong",
    "a call was refused",
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("secrets")
    addresses = {
        f"HOPLINE_{name}_ADDRESS": f"{HOST}:{free_port()}" for name in ("STORE", "ROUTER", "QUEUE", "GATEWAY", "MGMT")
    }
    environment = {
        **addresses,
        "HOPLINE_QUEUE_PROCESSES": "1",
        "HOPLINE_USER": "first",
        "HOPLINE_PASSWORD": PASSWORDS["first"],
        "HOPLINE_LOG_LEVEL": "debug",
        "HOPLINE_LOG_FORMAT": "json",
        "HOPLINE_LEDGER_SECONDS": "1",
        "HOPLINE_SASL_MECHANISMS": "PLAIN AMQPLAIN SCRAM-SHA-256 CRAM-MD5",
    }
    with running_stack(folder / "data", environment) as started:
        stacks = secret.read_or_make(started.data / "run" / "secret")
        secret.use(stacks)
        SECRETS["stack"], SECRETS["nats"] = [stacks.encode()], [secret.nats_token().encode()]
        secret.use("")
        yield started


class Used:
    """A stack, and what commands and HTTP have said of it."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.said = ""
        self._environment = stack.command_environment()
        del self._environment["HOPLINE_PASSWORD"]

    def hopline(self, *arguments: str, given: str = "") -> None:
        """A command; what it is given is nowhere to be seen while it waits for it."""
        with subprocess.Popen(
            [HOPLINE, *arguments], env=self._environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as command:  # fmt: skip
            assert in_processes(SECRETS) <= PROCESSES
            said = command.communicate(given, timeout=60)[0]
        assert command.returncode == 0, said
        self.said += said

    def add(self, name: str, password: str, *arguments: str) -> None:
        self.hopline("users", "add", name, "--password-file", "-", *arguments, given=f"{password}\n")

    def sign_in(self, user: str) -> None:
        """A traced message goes through; then the client says that it has another password."""
        address = replace(self.stack.address, user=user, password=PASSWORDS[user])
        with connected(address, client_properties={"connection_name": "a client"}) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("work", durable=True)
            properties = pika.BasicProperties(message_id="one", delivery_mode=2)
            channel.basic_publish("", "work", b"a message", properties)
            fetch(channel, "work")
            connection.update_secret(PASSWORDS["renewed"], "it is time")
            wait_until(lambda: "new secret is wrong" in self.stack.log.read_text(errors="replace"), 20, "comparison")

    def ask(self, user: str, password: str) -> None:
        """Over HTTP."""
        request = urllib.request.Request(f"http://{HOST}:{self.stack.http_port}/api/trace/one")
        request.add_header("Authorization", f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                self.said += answer.read().decode()
        except urllib.error.HTTPError as failure:
            with failure:
                self.said += failure.read().decode() + str(failure.headers)

    def provide(self, name: str, kind: str, options: str) -> BrokerAddress:
        """A provider, and a port for it; gives the address."""
        self.hopline("providers", "add", name, kind, "--options-file", "-", given=options)
        address = replace(self.stack.address, port=free_port())
        self.hopline("ports", "add", name, "--address", f"{HOST}:{address.port}", "--provider", name)
        wait_until(lambda: _listens(address), 20, f"port {name}")
        return address

    def stumble(self, mechanism: str, response: bytes, at: BrokerAddress | None = None) -> None:
        """A client whose response is not as its mechanism wants it, or wrong."""
        address = at or self.stack.address
        with socket.create_connection((address.host, address.port), 10) as made:
            arguments = (EMPTY, short(mechanism), len(response).to_bytes(4, "big"), response, short("en_US"))
            made.sendall(HEADER + method(10, 11, *arguments, channel=0))
            while data := made.recv(65536):
                self.said += data.decode("latin-1")

    def call(self, address: str, said: str) -> None:
        """A caller without the stack's secret calls the store."""
        with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as failure:
            StoreStub(channel).AllocateOrigin(
                store_pb2.AllocateOriginRequest(), metadata=[(secret.FIELD, f"Bearer {said}")], timeout=10
            )
        self.said += str(failure.value)


@pytest.fixture(scope="module")
def used(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Used:
    """After all that needs a secret was done with the stack, some of it wrongly."""
    used = Used(stack)
    file = tmp_path_factory.mktemp("password") / "file"
    file.write_text(PASSWORDS["by-file"])
    used.hopline("tracing", "rules", "add", "all")
    used.hopline("users", "add", "by-file", "--password-file", str(file), "--tag", "monitoring")
    for password in ("changed", "by-input"):
        used.add("by-input", PASSWORDS[password])
    everything = ("--configure", ".*", "--write", ".*", "--read", ".*")
    for user in ("by-file", "by-input", "recoverable", "listed", "alice"):
        used.hopline("permissions", "set", user, *everything)
    for user in ("first", "by-file", "by-input"):
        wait_until(lambda user=user: _comes_in(used, user), 20, "sign-in")
        used.ask(user, PASSWORDS[user])
        used.ask(user, PASSWORDS["wrong"])
        for _ in range(OF_USER_THERE.burst + 2):
            used.stumble("PLAIN", f"\0{user}\0{PASSWORDS['wrong']}".encode())
    for mechanism in ("PLAIN", "AMQPLAIN"):
        used.stumble(mechanism, PASSWORDS["malformed"].encode())
    used.add("recoverable", PASSWORDS["recoverable"], "--kind", "recoverable")
    _use_providers(used, file)
    used.call(stack.command_environment()["HOPLINE_STORE_ADDRESS"], PASSWORDS["stranger"])
    for command in (
        "users list",
        "providers list",
        "providers list --json",
        "ports list",
        "health",
        "partitions --json",
        "tracing --json",
    ):
        used.hopline(*command.split())
    wait_until(lambda: FiledLedger(stack.data).rows("stages"), 30, "filed rows")
    used.hopline("trace", "one", "--json")
    return used


def _use_providers(used: Used, file: Path) -> None:
    """Of a file, of a directory that is away, and of an issuer: rightly, and wrongly."""
    file.write_text(f"listed:{PASSWORDS['listed']}\n")
    at_file = used.provide("listed", "file", f'path = "{file}"\nformat = "plain"\n')
    directory = 'url = "ldaps://127.0.0.1:9"\nsearch_base = "dc=x"\nbind_dn = "cn=x"\n'
    secret_too = f'{directory}bind_password = "{PASSWORDS["directory"]}"\n'
    at_directory = used.provide("directory", "ldap", secret_too)
    with running_issuer() as issuer:
        at_issuer = used.provide("issuer", "oauth2", f'issuer = "{issuer.url}"\naudience = ["hopline"]\n')
        token, bad = issuer.token(), issuer.token(aud="another")
        SECRETS["token"], SECRETS["bad token"] = forms("alice", token), forms("alice", bad)
        with connected(replace(at_issuer, user="alice", password=token)) as connection:
            connection.update_secret(token, "it is time")
        used.stumble("XOAUTH2", f"user=alice\1auth=Bearer {bad}\1\1".encode(), at_issuer)
        used.stumble("XOAUTH2", f"auth=Bearer {token}".encode(), at_issuer)
    with connected(replace(at_file, user="listed", password=PASSWORDS["listed"])):
        pass
    for at in (at_file, at_directory):
        used.stumble("PLAIN", f"\0listed\0{PASSWORDS['wrong']}".encode(), at)
    wait_until(lambda: _comes_in_as(used, "recoverable"), 20, "sign-in")


def _comes_in_as(used: Used, user: str) -> bool:
    try:
        connect(replace(used.stack.address, user=user, password=PASSWORDS[user])).close()
    except AMQPError:
        return False
    return True


def _listens(address: BrokerAddress) -> bool:
    try:
        socket.create_connection((address.host, address.port), 1).close()
    except OSError:
        return False
    return True


def _comes_in(used: Used, user: str) -> bool:
    with suppress(AMQPError):
        used.sign_in(user)
        return True
    return False


def test_processes(used: Used) -> None:
    """Processes that need a secret have it; no command or environment shows it to other users of the machine."""
    assert in_processes(SECRETS) == PROCESSES


def test_files(used: Used) -> None:
    """The ledger's files, NATS's, spans, configuration records: of users there are hashes, secrets have their files."""
    assert in_files(SECRETS, used.stack.data) == FILES
    hashed = in_files({"a hash": [b"$argon2id$"]}, used.stack.data)
    assert {path.partition("-")[0] for _, path in hashed} == {"hopline.db"}
    key = KeyPlace(None, used.stack.data).find().read_bytes().strip()
    assert in_files({"key": [key]}, used.stack.data) == set()


def test_the_audit_log(used: Used) -> None:
    """Has every sign-in, by each provider, and every change with its user; `test_files` looks for secrets in it."""
    files = used.stack.data.glob("audit/*/*.jsonl")
    lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    assert {line["event"] for line in lines} == set(AUDITED)
    came = {(line["event"], line["provider"]) for line in lines if "provider" in line}
    assert came == {
        ("signed in", "internal"), ("refused", "internal"), ("signed in", "listed"), ("refused", "listed"),
        ("refused", "directory"), ("signed in", "issuer"), ("refused", "issuer"),
    }  # fmt: skip
    changed = {(line["what"], line["name"], line["change"]) for line in lines if line["event"] == "changed"}
    assert changed >= {
        ("user", "by-input", "put"),
        ("authentication_provider", "issuer", "put"),
        ("port", "issuer", "put"),
    }
    whose = {
        line.get("by", "").partition(" at ")[2].partition(" of ")[0] for line in lines if line.get("what") == "port"
    }
    assert whose == {"the command line"}


def test_what_is_said(used: Used) -> None:
    """Logs at their most talkative, answers of commands, of HTTP and to clients that stumble."""
    log = used.stack.log.read_text(errors="replace")
    missing = [event for event in EVENTS if event not in log]
    assert missing == []
    assert in_text(SECRETS, log) == []
    assert in_text(SECRETS, used.said) == []


def test_it_would_be_found(used: Used, tmp_path: Path) -> None:
    """The search finds a secret that is there: in a command, an environment, a file, a text, as clients write it."""
    [password, plain, basic] = SECRETS["wrong"]
    command = [sys.executable, "-c", "print(flush=True); input()", password]
    environment = {**os.environ, "X": plain.decode()}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout
        process.stdout.readline()  # a process shows its command a moment after it was started
        found = {where for name, _, where in in_processes(SECRETS) - PROCESSES if name == "wrong"}
        process.communicate(b"\n")
    assert found == {"cmdline", "environ"}
    (tmp_path / "file").write_bytes(basic)
    assert in_files(SECRETS, tmp_path) == {("wrong", "file")}
