"""`hopline permissions`, `groups`, `acl`, `users tags`: what mgmt is asked for, and what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from services.__main__ import app
from services.common import secret
from services.common.clients.mgmt import MgmtClient
from services.rpc import mgmt_pb2 as pb

SET = pb.Access(
    permissions=[
        pb.Permission(user="anna", virtual_host="/", configure="^a", write="[x]", read="\x1b[31m"),
        pb.Permission(user="bob", read=".*"),
    ],
    topic_permissions=[pb.TopicPermission(user="anna", virtual_host="/", exchange="t", write="^eu")],
    groups=[pb.Group(name="clerks", members=["anna", "bob"])],
    limits=[
        pb.Limits(user="anna", values={"max-connections": 2, "max-channels": -1}),
        pb.Limits(virtual_host="shop", values={"max-queues": 0}),
    ],
    acls=[pb.Acl(text="ACL DENY ALL ALL\n"), pb.Acl(virtual_host="/", text="CONFIG DEFAULTDEFER=TRUE")],
)


class Mgmt:
    """What commands say to it."""

    def __init__(self) -> None:
        self.changes: list[dict[str, Any]] = []
        self.questions: list[pb.TestAccessRequest] = []
        self.tags: list[tuple[str, list[str]]] = []
        self.allowed = True


@pytest.fixture
def mgmt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Mgmt:
    monkeypatch.setenv("HOPLINE_DATA", str(tmp_path))
    heard = Mgmt()

    async def change_access(_: MgmtClient, **what: Any) -> None:
        heard.changes.append(what)

    async def list_access(_: MgmtClient) -> pb.Access:
        return SET

    async def answer(_: MgmtClient, question: pb.TestAccessRequest) -> pb.TestAccessReply:
        heard.questions.append(question)
        refused = "" if heard.allowed else "write access refused"
        return pb.TestAccessReply(allowed=heard.allowed, rule="acl: a rule", refused=refused)

    async def set_tags(_: MgmtClient, name: str, tags: list[str]) -> None:
        heard.tags.append((name, list(tags)))

    async def list_users(_: MgmtClient) -> list[pb.User]:
        return [pb.User(name="an\x1bna", tags=["monitoring"], loopback_only=True), pb.User(name="anna")]

    monkeypatch.setattr(MgmtClient, "test_access", answer)
    for method in (change_access, list_access, set_tags, list_users):
        monkeypatch.setattr(MgmtClient, method.__name__, method)
    return heard


def hopline(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app.whole, arguments)
    secret.use("")
    assert result.exit_code == status, result.output
    return result.output


CHANGES: dict[tuple[str, ...], dict[str, Any]] = {
    ("permissions", "set", "anna", "--read", ".*"): {
        "put_permission": pb.Permission(user="anna", virtual_host="/", read=".*")
    },
    ("permissions", "set", "anna", "--write", "x", "--configure", "y", "--all-vhosts"): {
        "put_permission": pb.Permission(user="anna", write="x", configure="y")
    },
    ("permissions", "set", "anna", "--read", ""): {"put_permission": pb.Permission(user="anna", virtual_host="/")},
    ("permissions", "clear", "anna", "--vhost", "work"): {
        "clear_permission": pb.PermissionKey(user="anna", virtual_host="work")
    },
    ("permissions", "clear", "anna", "--all-vhosts"): {"clear_permission": pb.PermissionKey(user="anna")},
    ("permissions", "topics", "set", "anna", "t", "--write", "^eu"): {
        "put_topic_permission": pb.TopicPermission(user="anna", virtual_host="/", exchange="t", write="^eu")
    },
    ("permissions", "topics", "clear", "anna", "t"): {
        "clear_topic_permission": pb.TopicPermissionKey(user="anna", virtual_host="/", exchange="t")
    },
    ("groups", "set", "clerks", "--member", "a", "--member", "b"): {
        "put_group": pb.Group(name="clerks", members=["a", "b"])
    },
    ("groups", "join", "clerks", "carl"): {"join_group": pb.Membership(group="clerks", user="carl")},
    ("groups", "leave", "clerks", "anna"): {"leave_group": pb.Membership(group="clerks", user="anna")},
    ("limits", "set", "--user", "anna", "--max-connections", "2", "--max-channels", "-1"): {
        "put_limits": pb.Limits(user="anna", values={"max-connections": 2, "max-channels": -1})
    },
    ("limits", "set", "--vhost", "shop", "--max-queues", "0"): {
        "put_limits": pb.Limits(virtual_host="shop", values={"max-queues": 0})
    },
    ("limits", "clear", "max-queues", "--vhost", "shop"): {
        "clear_limit": pb.LimitKey(virtual_host="shop", limit="max-queues")
    },
    ("limits", "clear", "--user", "anna"): {"clear_limit": pb.LimitKey(user="anna")},
    ("groups", "delete", "clerks"): {"delete_group": pb.GroupKey(name="clerks")},
    ("acl", "remove"): {"remove_acl": pb.AclKey()},
    ("acl", "remove", "--vhost", "/"): {"remove_acl": pb.AclKey(virtual_host="/")},
}


@pytest.mark.parametrize("words", CHANGES, ids=" ".join)
def test_changes(mgmt: Mgmt, words: tuple[str, ...]) -> None:
    """Each command says exactly that."""
    assert hopline(*words) == ""
    assert mgmt.changes == [CHANGES[words]]


def test_a_user_who_is_not_on_record(mgmt: Mgmt) -> None:
    """May be one of a directory, or a slip: it is done, and said."""
    for words in (("limits", "set", "--max-channels", "1", "--user"), ("permissions", "set", "--read", ".*")):
        assert "no user 'a\\x1b' is on record" in hopline(*words, "a\x1b")
    assert len(mgmt.changes) == 2


def test_rules_from_a_file(mgmt: Mgmt, tmp_path: Path) -> None:
    """Are loaded as they are, for the broker or a virtual host; a file that is not there is named."""
    file = tmp_path / "rules"
    file.write_text("ACL DENY ALL ALL")
    hopline("acl", "load", str(file))
    hopline("acl", "load", str(file), "--vhost", "/")
    assert [each["put_acl"] for each in mgmt.changes] == [
        pb.Acl(text="ACL DENY ALL ALL"),
        pb.Acl(text="ACL DENY ALL ALL", virtual_host="/"),
    ]
    missing = tmp_path / "none"
    assert hopline("acl", "load", str(missing), status=1) == f"{missing} cannot be read: No such file or directory\n"


def test_what_is_listed(mgmt: Mgmt) -> None:
    """As tables, or JSON; what is in an expression does nothing to a terminal."""
    heading, anna, bob = hopline("permissions", "list").splitlines()
    assert heading.split() == ["user", "vhost", "configure", "write", "read"]
    assert anna.split() == ["anna", "/", "^a", "[x]", "\\x1b[31m"]
    assert bob.split() == ["bob", "(all", "others)", ".*"]
    assert '"user": "bob"' in hopline("permissions", "list", "--json").splitlines()[1]
    assert hopline("permissions", "topics", "list").splitlines()[1].split() == ["anna", "/", "t", "^eu"]
    assert hopline("groups", "list").splitlines()[1].split() == ["clerks", "anna,", "bob"]
    assert json.loads(hopline("groups", "list", "--json")) == {"name": "clerks", "members": ["anna", "bob"]}
    heading, first, _ = hopline("users", "list").splitlines()
    assert first.split("  ") == ["an\\x1bna", "monitoring", "this machine"]
    assert json.loads(hopline("users", "list", "--json").splitlines()[0])["tags"] == ["monitoring"]
    assert hopline("acl", "show") == "ACL DENY ALL ALL\n"
    assert hopline("acl", "show", "--vhost", "/") == "CONFIG DEFAULTDEFER=TRUE\n"
    assert hopline("acl", "show", "--vhost", "none", status=1) == "no rules are loaded\n"
    assert json.loads(hopline("acl", "show", "--json")) == {"vhost": None, "rules": "ACL DENY ALL ALL\n"}
    assert json.loads(hopline("acl", "show", "--vhost", "/", "--json"))["vhost"] == "/"


def test_limits(mgmt: Mgmt) -> None:
    """Users and virtual hosts with limits, and which; one that is not set is -, and any number -1."""
    heading, anna, shop = hopline("limits", "list").splitlines()
    assert heading.split() == ["limits", "of", "name", "max-connections", "max-channels", "max-queues"]
    assert (anna.split(), shop.split()) == (["user", "anna", "2", "-1", "-"], ["vhost", "shop", "-", "-", "0"])
    assert [json.loads(line) for line in hopline("limits", "list", "--json").splitlines()] == [
        {"user": "anna", "value": {"max-channels": -1, "max-connections": 2}},
        {"vhost": "shop", "value": {"max-queues": 0}},
    ]


def test_a_question(mgmt: Mgmt) -> None:
    """Is answered with the rule that decides; what is denied is status 1, for scripts."""
    words = ("acl", "test", "anna", "publish", "exchange:orders", "--property", "routing_key=eu.new", "--from", "::1")
    assert hopline(*words) == "allowed\tacl: a rule\n"
    mgmt.allowed = False
    said = ("--vhost", "work", "--group", "a", "--group", "b", "--tag", "monitoring")
    assert hopline(*words, *said, status=1) == "denied\tacl: a rule\n"
    first, second = mgmt.questions
    assert (first.action, first.kind, first.name, first.virtual_host) == ("publish", "exchange", "orders", "/")
    assert (dict(second.properties), second.host, second.virtual_host) == ({"routing_key": "eu.new"}, "::1", "work")
    assert (list(second.groups), list(second.tags)) == (["a", "b"], ["monitoring"])


def test_a_question_of_a_script(mgmt: Mgmt) -> None:
    """Gets JSON, with what a user is told who is denied; the status is the same."""
    words = ("acl", "test", "anna", "publish", "exchange:orders", "--json")
    allowed = {"allowed": True, "rule": "acl: a rule", "refused": ""}
    assert json.loads(hopline(*words)) == allowed
    mgmt.allowed = False
    denied = {"allowed": False, "rule": "acl: a rule", "refused": "write access refused"}
    assert json.loads(hopline(*words, status=1)) == denied


def test_tags(mgmt: Mgmt) -> None:
    """Are set alone, or taken away."""
    hopline("users", "tags", "anna", "administrator", "monitoring")
    hopline("users", "tags", "anna")
    assert mgmt.tags == [("anna", ["administrator", "monitoring"]), ("anna", [])]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("permissions", "set", "anna", "--read", "x", "--vhost", "/", "--all-vhosts"), "not both"),
        (("permissions", "set", "anna"), "at least one of --configure, --write and --read is wanted"),
        (("permissions", "set", "anna", "--all-vhosts"), "at least one of --configure, --write and --read is wanted"),
        (("permissions", "topics", "set", "anna", "t"), "at least one of --write and --read is wanted"),
        (("acl", "test", "anna", "publish", "exchange:x", "--property", "x"), "name=value is wanted"),
        (("limits", "set", "--max-queues", "1"), "--user NAME or --vhost NAME"),
        (("limits", "clear", "--user", "anna", "--vhost", "/"), "--user NAME or --vhost NAME"),
        (("limits", "set", "--user", "anna"), "at least one of --max-connections"),
    ],
)
def test_what_is_wrong(mgmt: Mgmt, words: tuple[str, ...], text: str) -> None:
    """Is refused before any service is called."""
    assert text in hopline(*words, status=2)
    assert not mgmt.changes
