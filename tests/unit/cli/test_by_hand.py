"""`hopline publish` and `hopline get`: the user, what is sent, and how messages are shown."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from services.cli import password
from services.common.clients.objects import Page
from services.common.errors import AccessRefused
from services.rpc import objects_pb2 as pb
from tests.support.told_objects import MESSAGE, Told, hopline, told_by

GUEST = pb.Login(user="guest", password="guest")


@pytest.fixture
def mgmt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Told:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    return told_by(monkeypatch)


def test_publish(mgmt: Told) -> None:
    """What the options say, with headers and properties; as guest where nothing is said."""
    words = ("--exchange", "shop", "--key", "eu.new", "--header", "n:=3", "--property", "message_id=m", "--persistent")
    assert hopline("publish", "hi", *words, "--property", "priority:=5", "--vhost", "v") == "published\n"
    properties = {"delivery_mode": 2, "message_id": "m", "priority": 5, "headers": {"n": 3}}
    told = {"routing_key": "eu.new", "payload": "hi", "payload_encoding": "string", "properties": properties}
    assert mgmt.asked == [(GUEST, "v", "shop", told)]


def test_nobody_gets_it(mgmt: Told) -> None:
    """Is a failure, which says how to find out why."""
    mgmt.answer = False
    assert "`hopline route` shows why" in hopline("publish", "hi", "--key", "none", status=1)


def test_a_body_from_a_file(mgmt: Told, tmp_path: Path) -> None:
    """Or standard input: text as it is, bytes as base64."""
    (tmp_path / "it").write_bytes(b"\xff\x00")
    hopline("publish", "--file", str(tmp_path / "it"))
    hopline("publish", "--file", "-", stdin="grüße\n")
    data, text = [asked[3] for asked in mgmt.asked]
    assert (data["payload"], data["payload_encoding"]) == (base64.b64encode(b"\xff\x00").decode(), "base64")
    assert (text["payload"], text["payload_encoding"]) == ("grüße\n", "string")
    assert "none cannot be read" in hopline("publish", "--file", str(tmp_path / "none"), status=1)


def test_as_whom(mgmt: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user that is named, with a password from a file or typed once; else the first user of the settings."""
    (tmp_path / "it").write_text("secret\n")
    hopline("get", "q", "--user", "anna", "--password-file", str(tmp_path / "it"))
    monkeypatch.setattr(password, "_at_a_terminal", lambda: True)
    assert "typed" not in hopline("publish", "m", "--user", "anna", stdin="typed\n")
    hopline("publish", "m", "--password-file", str(tmp_path / "it"))
    monkeypatch.setenv("HOPLINE_USER", "root")
    assert "HOPLINE_PASSWORD" in hopline("get", "q", status=2)
    monkeypatch.setenv("HOPLINE_PASSWORD", "sesame")
    hopline("get", "q")
    assert [(asked[0].user, asked[0].password) for asked in mgmt.asked] == [
        ("anna", "secret"),
        ("anna", "typed"),
        ("guest", "secret"),
        ("root", "sesame"),
    ]


def test_who_is_refused(mgmt: Told) -> None:
    """Is told what to do."""
    mgmt.error = AccessRefused("the gateway does not let that user in")
    for words in (("publish", "m"), ("get", "q")):
        assert "--user and --password-file say who signs in" in hopline(*words, status=1)


MODES = {(): "ack_requeue_true", ("--take",): "ack_requeue_false", ("--reject",): "reject_requeue_false"}


@pytest.mark.parametrize("words", MODES, ids=" ".join)
def test_get(mgmt: Told, words: tuple[str, ...]) -> None:
    """Shows messages in their order, and nothing in them does anything to a terminal; they go back, or are gone."""
    told = hopline("get", "q", "--count", "2", "--truncate", "9", *words)
    assert told.splitlines() == [
        "1: 7 bytes from the default exchange with key 'orders', 1 left",
        "   message_id: m\\x1b[31m",
        "   one\\x1b[2J",
        "2: 7 bytes from the default exchange with key 'orders', delivered before, 1 left",
        "   message_id: m\\x1b[31m",
        "   one\\x1b[2J",
    ]
    wanted = {"count": 2, "ackmode": MODES[words], "encoding": "auto", "truncate": 9}
    assert mgmt.asked == [(GUEST, "/", "q", wanted)]


def test_get_as_json(mgmt: Told) -> None:
    """Has all there is of each, on a line."""
    told = hopline("get", "q", "--json")
    assert [json.loads(line)["redelivered"] for line in told.splitlines()] == [False, True]
    assert json.loads(told.splitlines()[0]) == MESSAGE
    assert told.replace("\n", "").isprintable()


def test_what_is_no_text(mgmt: Told) -> None:
    """Is shown as bytes."""
    body = base64.b64encode(b"\xff\x00").decode()
    mgmt.messages = [Page([{**MESSAGE, "payload": body, "payload_encoding": "base64", "payload_bytes": 2}], 1)]
    assert "ff 00" in hopline("get", "q")


def test_nothing_waits(mgmt: Told) -> None:
    """Is said."""
    mgmt.messages = [Page([], 0)]
    assert hopline("get", "q\x1b") == "nothing waits in queue 'q\\x1b'\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("publish", "t.005", "hello"), "--key KEY"),
        (("publish",), "a body, or --file FILE"),
        (("publish", "m", "--file", "x"), "a body, or --file FILE"),
        (("publish", "--file", "-", "--password-file", "-"), "standard input has one of them"),
        (("publish", "m", "--header", "x"), "--header 'x' is not understood"),
        (("get", "q", "--take", "--reject"), "not both"),
        (("get", "q", "--count", "0"), "--count"),
    ],
)
def test_what_is_wrong(mgmt: Told, words: tuple[str, ...], text: str) -> None:
    """Is refused before any service is called."""
    assert text in hopline(*words, status=2)
    assert not mgmt.asked
