"""`hopline queues`, `exchanges`, `bindings`, `connections`, `consumers`: what mgmt is asked, and what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.mgmt import MgmtClient
from services.common.clients.ports import PortsClient
from services.common.clients.tracing import TracingClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.common.errors import NotFound, PreconditionFailed, SyntaxFault
from services.rpc import objects_pb2 as pb
from tests.support.told_objects import QUEUE, Told, hopline, told_by


@pytest.fixture
def mgmt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    return told_by(monkeypatch)


LISTS = {
    "queues": "orders / 12 3 1 classic yes queue-1",
    "exchanges": "(default) / direct yes no no -",
    "policies": 'short / ^jobs queues max-length=5 overflow="drop-head" 1',
    "bindings": r'(default) / orders queue eu.\x1b[31m {"x": "\u001b[2J\u202e"}',
    "consumers": "orders / mine 3.2 yes no yes 7",
    "connections": r"3.2 anna / shop \x1b]0;owned\x07 [::1]:5000 1 gateway-3",
}


@pytest.mark.parametrize("kind", LISTS)
def test_lists(mgmt: Told, kind: str) -> None:
    """Are tables, or one JSON object on each line with all there is; what is in a name does nothing to a terminal."""
    heading, line = hopline(kind, "list").splitlines()
    assert " ".join(line.split()) == LISTS[kind]
    assert "vhost" in heading
    told = hopline(kind, "list", "--json")
    [[row]] = mgmt.pages[mgmt.asked[0].kind]
    assert json.loads(told) == row
    assert told[:-1].isprintable()
    assert not mgmt.asked[0].HasField("virtual_host")


def test_pages(mgmt: Told) -> None:
    """Are one table: the headings come once, columns are as wide as what has come by then, numbers on the right."""
    mgmt.pages[pb.QUEUE] = [[QUEUE], [], [{**QUEUE, "name": "a name that is longer", "messages_ready": 7}]]
    heading, first, second = hopline("queues", "list").splitlines()
    assert heading.startswith("queue   vhost  ready  ")
    assert first.startswith("orders  /         12  ")
    assert second.startswith("a name that is longer  /          7  ")


def test_nothing(mgmt: Told) -> None:
    """Is a table with nothing in it; as JSON, nothing at all."""
    mgmt.pages[pb.QUEUE] = [[]]
    assert hopline("queues", "list").split() == [*["queue", "vhost", "ready", "unacknowledged"], *_REST]
    assert hopline("queues", "list", "--json") == ""


_REST = ["consumers", "type", "durable", "served", "by"]

ASKED: dict[tuple[str, ...], pb.ListRequest] = {
    ("queues", "list", "sh*", "--vhost", "v", "--sort", "messages", "--descending", "--limit", "3"): pb.ListRequest(
        kind=pb.QUEUE, virtual_host="v", fits={"name": "sh*"}, sort="messages", descending=True, most=3
    ),
    ("queues", "list", "--where", "durable=false", "--where", "arguments.x-queue-type=a=b"): pb.ListRequest(
        kind=pb.QUEUE, fits={"durable": "false", "arguments.x-queue-type": "a=b"}
    ),
    ("exchanges", "list", "amq.*"): pb.ListRequest(kind=pb.EXCHANGE, fits={"name": "amq.*"}),
    ("exchanges", "list", "--sort", "type"): pb.ListRequest(kind=pb.EXCHANGE, sort="type"),
    ("bindings", "list", "--sort", "destination"): pb.ListRequest(kind=pb.BINDING, sort="destination"),
    ("connections", "list", "--sort", "channels", "--descending"): pb.ListRequest(
        kind=pb.CONNECTION, sort="channels", descending=True
    ),
    ("consumers", "list", "--sort", "consumer_tag", "--limit", "3"): pb.ListRequest(
        kind=pb.CONSUMER, sort="consumer_tag", most=3
    ),
    ("bindings", "list", "--from", "", "--to", "q*"): pb.ListRequest(
        kind=pb.BINDING, fits={"source": "", "destination": "q*"}
    ),
    ("consumers", "list", "orders"): pb.ListRequest(kind=pb.CONSUMER, fits={"queue.name": "orders"}),
    ("connections", "list", "--user", "anna", "--client", "shop*"): pb.ListRequest(
        kind=pb.CONNECTION, fits={"user": "anna", "user_provided_name": "shop*"}
    ),
}


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_what_is_asked(mgmt: Told, words: tuple[str, ...]) -> None:
    """Exactly what the options say."""
    hopline(*words)
    assert mgmt.asked == [ASKED[words]]


SHOWN = {
    ("queues", "show", "orders"): ("consumers ", "consumer:", "bindings:"),
    ("exchanges", "show", ""): ("type         direct", "bindings:"),
    ("connections", "show", "3.2"): ("peer_host ", "channel:"),
}


@pytest.mark.parametrize("words", SHOWN, ids=" ".join)
def test_one(mgmt: Told, words: tuple[str, ...]) -> None:
    """With its fields as lines and what belongs to it as tables, or as JSON."""
    told = hopline(*words)
    for part in SHOWN[words]:
        assert any(line.startswith(part) for line in told.splitlines()), told
    assert "exclusive_consumer_tag" not in told  # there is none
    assert told.replace("\n", "").isprintable()
    as_json = hopline(*words, "--json")
    assert as_json.startswith("{\n")
    assert as_json.replace("\n", "").isprintable()
    assert json.loads(as_json)["vhost"] == "/"


DECLARED = {
    ("queues", "declare", "q"): ((pb.QUEUE, "/", "q", {"durable": True, "auto_delete": False, "arguments": {}})),
    ("queues", "declare", "q", "--vhost", "v", "--transient", "--auto-delete", "--argument", "x-max-length:=5"): (
        (pb.QUEUE, "v", "q", {"durable": False, "auto_delete": True, "arguments": {"x-max-length": 5}})
    ),
    ("exchanges", "declare", "e", "--type", "topic", "--internal", "--argument", "alternate-exchange=x"): (
        pb.EXCHANGE,
        "/",
        "e",
        {
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": True,
            "arguments": {"alternate-exchange": "x"},
        },
    ),
}


@pytest.mark.parametrize("words", DECLARED, ids=" ".join)
def test_declare(mgmt: Told, words: tuple[str, ...]) -> None:
    """Says what is wanted, durable unless it is said otherwise; and whether it was there already."""
    assert hopline(*words) == "declared\n"
    mgmt.answer = False
    assert hopline(*words) == "it was there already\n"
    assert mgmt.asked == [DECLARED[words]] * 2


def test_several(mgmt: Told) -> None:
    """Are done one after the other, and told as they are done."""
    assert hopline("queues", "purge", "a", "b\x1b") == "a: 7 messages are gone\nb\\x1b: 7 messages are gone\n"
    assert hopline("queues", "delete", "a", "--if-empty", "--if-unused") == "a: deleted, with 5 messages\n"
    assert hopline("exchanges", "delete", "e", "--if-unused", "--vhost", "v") == "e: deleted\n"
    assert hopline("connections", "close", "3.2", "--reason", "night") == "3.2: closed\n"
    assert mgmt.asked[2:] == [
        pb.DeleteRequest(kind=pb.QUEUE, virtual_host="/", name="a", if_empty=True, if_unused=True),
        pb.DeleteRequest(kind=pb.EXCHANGE, virtual_host="v", name="e", if_unused=True),
        ("3.2", "night"),
    ]


def test_the_first_that_fails(mgmt: Told) -> None:
    """Ends the command, and is named; those after it are not tried."""
    mgmt.error = PreconditionFailed("queue 'a\x1b' in vhost '/' in use")
    assert hopline("queues", "delete", "a", "b", status=1).startswith("queue 'a\\x1b' in vhost '/' in use; ")
    assert len(mgmt.asked) == 1


@pytest.mark.parametrize("what", ["bind", "unbind"])
def test_bindings(mgmt: Told, what: str) -> None:
    """Are made and ended by their ends, key and arguments."""
    words = ("bindings", what, "shop", "all", "--key", "eu.#", "--to-exchange", "--argument", "x-match=any")
    assert hopline(*words, "--vhost", "v") == f"{'bound' if what == 'bind' else 'unbound'}\n"
    [(asked, request)] = mgmt.asked
    assert json.loads(request.told) == {"routing_key": "eu.#", "arguments": {"x-match": "any"}}
    request.told = b""
    assert (asked, request) == (
        what,
        pb.BindRequest(virtual_host="v", source="shop", destination="all", to_exchange=True),
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("queues", "declare", "q", "--argument", "x"), "--argument 'x' is not understood: name=text, or name:=JSON"),
        (("queues", "list", "--where", "durable"), "COLUMN=PATTERN is wanted, such as durable=true"),
        (("queues", "purge"), "QUEUE"),
    ],
)
def test_what_is_wrong(mgmt: Told, words: tuple[str, ...], text: str) -> None:
    """Is refused before any service is called."""
    assert text in hopline(*words, status=2)
    assert not mgmt.asked


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("no queue 'q' in vhost '/'", "hopline queues list"),
        ("no vhost 'v'", "hopline vhosts list"),
        ("queue 'q' in vhost '/' not empty", "hopline queues purge"),
        ("queue 'q' in vhost '/' in use", "hopline consumers list"),
        ("inequivalent arg 'durable' for queue 'q' in vhost '/': …", "until it is deleted"),
        ("invalid arg 'x-max-length' for queue 'q' in vhost '/': must be an integer, not str", "NAME:=5"),
    ],
)
def test_what_to_do(mgmt: Told, text: str, hint: str) -> None:
    """Is told with what went wrong."""
    mgmt.error = PreconditionFailed(text)
    said = hopline("queues", "show", "q", status=1)
    assert said.startswith(f"{text}; ")
    assert hint in said


@pytest.mark.parametrize(
    ("words", "owner", "method", "text"),
    [
        (("users", "delete", "x"), MgmtClient, "delete_user", "no user 'x'"),
        (("groups", "delete", "x"), MgmtClient, "change_access", "no group 'x'"),
        (("groups", "leave", "g", "x"), MgmtClient, "change_access", "user 'x' is in no group 'g'"),
        (("permissions", "set", "a", "--read", "", "--vhost", "x"), MgmtClient, "change_access", "vhost 'x' not found"),
        (("permissions", "clear", "a"), MgmtClient, "change_access", "user 'a' has no permission of its own in …"),
        (("limits", "clear", "--user", "a"), MgmtClient, "change_access", "'a' has no limit"),
        (("vhosts", "delete", "x"), VirtualHostsClient, "delete", "vhost 'x' not found"),
        (("providers", "remove", "x"), MgmtClient, "remove_provider", "no authentication provider 'x'"),
        (("ports", "remove", "x"), PortsClient, "remove", "no port 'x'"),
        (("tracing", "rules", "remove", "x"), TracingClient, "remove", "no tracing rule 'x'"),
    ],
)
def test_what_to_do_about_others(
    mgmt: Told, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], owner: type, method: str, text: str
) -> None:
    """Is told by all commands: how to find what there is."""

    async def refuse(*_: Any, **__: Any) -> None:
        raise NotFound(text)

    monkeypatch.setattr(owner, method, refuse)
    said = hopline(*words, status=1)
    assert said.startswith(f"{text}; `hopline ")
    assert " list` says " in said


def test_what_mgmt_refuses(mgmt: Told) -> None:
    """Is one line, with what there would be."""
    mgmt.error = SyntaxFault("there is no column 'x'; there are name, vhost")
    assert hopline("queues", "list", "--sort", "x", status=1) == "there is no column 'x'; there are name, vhost\n"


def test_virtual_hosts(mgmt: Told) -> None:
    """Are a table with what is said of them as well, or JSON."""
    rows = [
        {"name": "/", "description": "", "tags": []},
        {"name": "\x1b[31m", "description": "of the shop", "tags": ["a", "b"]},
    ]
    mgmt.pages[pb.VIRTUAL_HOST] = [rows]
    told = [line.split() for line in hopline("vhosts", "list").splitlines()]
    assert told == [["vhost", "description", "tags"], ["/", "-", "-"], ["\\x1b[31m", "of", "the", "shop", "a,", "b"]]
    assert [json.loads(line) for line in hopline("vhosts", "list", "--json").splitlines()] == rows


def test_what_is_said_of_a_virtual_host(mgmt: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is added, or later: the router adds it, and mgmt is told what is said, if anything is."""
    added = list[str]()

    async def create(_: VirtualHostsClient, name: str) -> None:
        added.append(name)

    monkeypatch.setattr(VirtualHostsClient, "create", create)
    hopline("vhosts", "add", "plain")
    assert not mgmt.asked
    hopline("vhosts", "add", "shop", "--description", "", "--tag", "a", "--tag", "b")
    assert added == ["plain", "shop"]
    assert mgmt.asked == [(pb.VIRTUAL_HOST, "shop", "shop", {"description": "", "tags": ["a", "b"]})]
