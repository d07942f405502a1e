"""What a user may do, remembered for a connection."""

from __future__ import annotations

from contextlib import nullcontext
from unittest.mock import Mock

import pytest

from services.common.access import questions as q
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other
from services.common.access.records import AclText, Permission, TopicPermission
from services.common.authentication.principal import Principal
from services.common.clients.access import Access
from services.common.errors import AccessRefused, NotAllowed
from services.common.runtime import CannotStart
from services.common.topology.slots import SlotName
from services.gateway import vocabulary as v
from services.gateway.operations import OPERATIONS, needs
from tests.support.permitted import Ruled

EVERYTHING = Permission(user="guest", virtual_host="/", configure=".*", write=".*", read=".*")

ASKS_NOTHING = {
    v.Authenticate,  # no user is known before
    v.UpdateSecret,
    v.OpenSession,
    v.Close,
    v.EndSessions,
    v.CloseSession,
    v.DropQueue,  # the connection's own, which only an engine asks for
    v.CloseLink,  # the same, of what the link has made
    v.Settle,  # what was delivered was allowed when its consumer began
    v.SelectConfirms,
    v.EndProduce,
    v.Credit,
    v.Limit,
    v.Flow,
    v.Room,
    v.Echo,
    v.Recover,
    v.SelectTransactions,
    v.DeclareTransaction,
    v.Commit,  # what is in it was asked about when it came
    v.Rollback,
}


def test_every_operation_declares_what_it_needs() -> None:
    """A new request is either asked about, or on the list of those that need nothing, which is above."""
    assert {kind for kind, operation in OPERATIONS.items() if operation.needs is needs.nothing} == ASKS_NOTHING
    assert {kind for kind, each in OPERATIONS.items() if each.needs is needs.each_message} == {v.Publish}


class Counted(Ruled):
    """How often a decision is made."""

    def __init__(self) -> None:
        super().__init__()
        self.decided: list[Asked] = []
        inner = self.access.decide

        def decide(principal: object, asked: Asked) -> object:
            self.decided.append(asked)
            return inner(principal, asked)  # type: ignore[arg-type]

        self.access.decide = decide  # type: ignore[method-assign, assignment]

    def publishes(self, exchange: str, key: str) -> str:
        """Why not; as `publish` asks."""
        if exchange in self.permitted.writable:
            return ""
        error = self.permitted.refusal_to_publish("/", exchange, key)
        return error.text if error else ""


def test_a_publish_is_a_look_up() -> None:
    """An exchange is decided about once, for any keys, allowed or not, until rules change."""
    ruled = Counted()
    ruled.set(EVERYTHING.model_copy(update={"write": "^x$"}))
    for key in "abc" * 10:
        assert ruled.publishes("x", key) == ""
        assert ruled.publishes("y", key) == "write access to exchange 'y' in vhost '/' refused for user 'guest'"
    assert len(ruled.decided) == 2
    ruled.set(EVERYTHING.model_copy(update={"write": "^y$"}))
    assert ruled.publishes("x", "a")
    assert not ruled.publishes("y", "a")


def test_dead_letters_of_a_queue_that_seems_to_be_there() -> None:
    """They need the right to write there all the same: the gateway may not have heard that it was deleted."""
    ruled = Ruled()
    ruled.set(EVERYTHING.model_copy(update={"write": "^own"}))
    session = Mock(permitted=ruled.permitted)
    session.connection.virtual_host, session.broker.topology.by_name = "/", {SlotName("/", "q"): Mock()}
    session.broker.bindings.has_exchange = lambda _, name: name == "theirs"
    to_theirs = {"destination": "theirs"}
    for name in ("x-dead-letter-exchange", "alternateExchange", "alternateBinding"):
        table = {name: to_theirs if name == "alternateBinding" else "theirs"}
        with pytest.raises(AccessRefused, match="write access to exchange 'theirs'"):
            needs.declare_queue(session, v.DeclareQueue(1, name="q", arguments=table))
    needs.declare_queue(session, v.DeclareQueue(1, name="q", arguments={"x-dead-letter-exchange": "own"}))


@pytest.mark.parametrize(
    ("known", "write", "configure", "refused"),
    [
        (False, r"^amq\.default$", "^q(_DLQ)?$", ""),
        (False, "^q_DLQ$", "^q(_DLQ)?$", "write access to exchange 'amq.default'"),
        (False, r"^amq\.default$", "^q$", "configure access to queue 'q_DLQ'"),
        (True, "^q_DLQ$", "^q(_DLQ)?$", ""),
        (True, r"^amq\.default$", "^q(_DLQ)?$", "write access to exchange 'q_DLQ'"),
        (None, "^(amq.default|q_DLQ)$", "^q(_DLQ)?$", ""),
        (None, "^q_DLQ$", "^q(_DLQ)?$", "write access to exchange 'amq.default'"),
        (None, r"^amq\.default$", "^q(_DLQ)?$", "write access to exchange 'q_DLQ'"),
    ],
)
def test_a_dead_letter_queue_that_is_made(known: bool | None, write: str, configure: str, refused: str) -> None:
    """Who has it made may configure it, and write where it leads; where the gateway does not know that, to both."""
    ruled = Ruled()
    ruled.set(EVERYTHING.model_copy(update={"write": write, "configure": configure}))
    session = Mock(permitted=ruled.permitted)
    session.connection.virtual_host, session.broker.bindings = "/", Mock(whole=known is not None)
    session.broker.bindings.has_exchange = lambda *_: known
    declare = v.DeclareQueue(1, name="q", arguments={"x-qpid-dlq-enabled": True})
    with pytest.raises(AccessRefused, match=refused) if refused else nullcontext():
        needs.declare_queue(session, declare)


def test_what_is_denied_is_on_record() -> None:
    """A denial is on record with user, address and object each time that a client is told; what is allowed is not."""
    ruled = Counted()
    ruled.set(EVERYTHING.model_copy(update={"write": "^x$", "configure": "", "read": "^q$"}))
    ruled.publishes("x", "a")
    for _ in range(2):
        ruled.publishes("y", "a")
    with pytest.raises(AccessRefused) as refused:
        ruled.permitted.check(q.delete_exchange("/", "x"))
    ruled.permitted.check_one_of([q.look(Kind.QUEUE, "/", "other"), q.look(Kind.QUEUE, "/", "q")])
    assert [(each.event, each.user, each.peer, each.what, each.name) for each in ruled.denied] == [
        ("denied", "guest", "127.0.0.1", "EXCHANGE", name) for name in ("y", "y", "x")
    ]
    assert ruled.denied[-1].reason == refused.value.text


def test_keys_are_decided_about_where_they_count() -> None:
    """Each once where a topic permission, or a rule, goes by them; other exchanges as before."""
    ruled = Counted()
    ruled.set(EVERYTHING, TopicPermission(user="guest", exchange="t", write="^eu"))
    for _ in range(10):
        assert not ruled.publishes("t", "eu.1")
        assert ruled.publishes("t", "us.1")
        assert not ruled.publishes("x", "us.1")
    assert len(ruled.decided) == 2  # another key of the same exchange is no other question


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that never come back take no more than so much memory, and are decided about rightly all the same."""
    monkeypatch.setattr("services.gateway.sessions.permitted._MOST", 20)
    monkeypatch.setattr("services.gateway.sessions.permitted._SIZE", 4000)
    monkeypatch.setattr("services.gateway.sessions.permitted._LEAST", 2000)
    monkeypatch.setattr("services.gateway.sessions.permitted._FEW", 10)
    ruled = Counted()
    ruled.set(EVERYTHING, TopicPermission(user="guest", exchange="t", write="^eu"))
    for number in range(100):
        assert not ruled.publishes("t", f"eu.{number}")
        assert ruled.publishes("t", f"us.{number}")
        assert not ruled.publishes(f"x{number}", "")
        ruled.permitted.check(q.delete_exchange("/", f"x{number}"))
        assert len(ruled.permitted.writable) <= 20
        assert len(ruled.permitted._known) <= 20
        assert len(ruled.permitted._by_key) <= 10
        assert ruled._permits._count <= 20


def test_long_names_take_no_more_than_short_ones() -> None:
    """A client names ten thousand exchanges that are not there, or keys, of 255 bytes each: it is bounded by size."""
    ruled = Counted()
    ruled.set(EVERYTHING, TopicPermission(user="guest", exchange="t", write="^eu"))
    for number in range(10_000):
        assert not ruled.publishes(f"{number:0255}", "")
        assert ruled.publishes("t", f"us.{number:0252}")
    names = sum(map(len, ruled.permitted.writable)) + sum(
        len(exchange) + len(key) + len(text or "") for (exchange, key), text in ruled.permitted._known.items()
    )
    assert 0 < names <= 2 << 20


def test_users_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any number of users no more is remembered than so much, and each is decided about rightly."""
    monkeypatch.setattr("services.gateway.sessions.permitted._MOST", 20)
    ruled = Counted()
    ruled.set(EVERYTHING)
    others = [ruled._permits.of(f"user{number}", "127.0.0.1") for number in range(50)]
    for _ in range(2):
        for other in others:
            with pytest.raises(AccessRefused):
                other.check(q.delete_exchange("/", "x"))
            ruled.permitted.check(q.delete_exchange("/", "x"))
            assert len(ruled._permits._decided) <= 20


def test_connections_of_the_same_user() -> None:
    """Are decided about together, until rules change; a user of another address, or in other groups, is apart."""
    ruled = Counted()
    ruled.set(EVERYTHING)
    consume = q.of_queue(Action.CONSUME, "/", "q", ())
    for _ in range(5):
        ruled._permits.of("guest", "127.0.0.1").check(consume)
    assert len(ruled.decided) == 1
    ruled._permits.of("guest", "192.0.2.7").check(consume)
    ruled._permits.of("guest", "127.0.0.1", "", Principal("guest", "staff", frozenset({"clerks"}))).check(consume)
    assert len(ruled.decided) == 3
    ruled.set(EVERYTHING.model_copy(update={"read": ""}))
    with pytest.raises(AccessRefused):
        ruled._permits.of("guest", "127.0.0.1").check(consume)


def test_all_connections_together_remember_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are many, each remembers less."""
    monkeypatch.setattr("services.gateway.sessions.permitted._OF_ALL", 200_000)
    monkeypatch.setattr("services.gateway.sessions.permitted._LEAST", 1000)
    ruled = Counted()
    ruled.set(EVERYTHING, TopicPermission(user="guest", exchange="t", write="^eu"))
    others = [ruled._permits.of("guest", "127.0.0.1") for _ in range(9)]
    for number in range(300):
        assert not ruled.publishes("t", f"eu.{number}")
        assert all(each.refusal_to_publish("/", "t", f"eu.{number}") is None for each in others)
    assert sum(len(each._known) for each in [ruled.permitted, *others]) <= 1000


def test_what_nothing_is_called() -> None:
    """A name that is longer than any is decided about, and not remembered: AMQP 1.0 has addresses of a whole frame."""
    ruled = Counted()
    ruled.set(EVERYTHING.model_copy(update={"read": "^q"}))
    for asked in (q.look(Kind.QUEUE, "/", "q" * 60_000), q.of_queue(Action.CONSUME, "/", "x" * 60_000, ())):
        for _ in range(2):
            if asked.name[0] == "x":
                with pytest.raises(AccessRefused):
                    ruled.permitted.check(asked)
            else:
                ruled.permitted.check(asked)
    assert not ruled.permitted._known


def test_other_operations_are_remembered() -> None:
    """The same question is decided about once, until rules change."""
    ruled = Counted()
    ruled.set(EVERYTHING.model_copy(update={"read": "^q$"}))
    consume = q.of_queue(Action.CONSUME, "/", "other", ())
    for _ in range(3):
        ruled.permitted.check(q.of_queue(Action.CONSUME, "/", "q", ()))
        with pytest.raises(AccessRefused, match="read access to queue 'other' in vhost '/' refused for user 'guest'"):
            ruled.permitted.check(consume)
    assert len(ruled.decided) == 2
    ruled.set(EVERYTHING)
    ruled.permitted.check(consume)


def _binds(exchange: str, key: str) -> Asked:
    its = ((Property.DURABLE, True), (Property.ROUTING_KEY, key))
    return q.bind(Action.BIND, "/", exchange, Other(Kind.QUEUE, "q"), its)


def test_bindings_are_decided_about_once_for_all_keys() -> None:
    """But where a topic permission or a rule goes by them: then each is, allowed or not."""
    ruled = Counted()
    eu = TopicPermission(user="guest", exchange="t", read="^eu")
    ruled.set(
        EVERYTHING, eu, AclText(text="CONFIG DEFAULTDEFER=TRUE\nACL DENY guest BIND EXCHANGE routingkey=secret name=r")
    )
    for number in range(5):
        ruled.permitted.check(_binds("x", str(number)))
        ruled.permitted.check(_binds("t", f"eu.{number}"))
        ruled.permitted.check(_binds("r", str(number)))
        for exchange, key in (("t", f"us.{number}"), ("r", "secret")):
            with pytest.raises(AccessRefused):
                ruled.permitted.check(_binds(exchange, key))
    assert len([asked for asked in ruled.decided if asked.name == "x"]) == 1
    assert len([asked for asked in ruled.decided if asked.name == "t"]) == 10


def test_a_refusal_keeps_nothing() -> None:
    """Each is an error of its own: one that is raised again and again would keep every frame that it passed."""
    ruled = Ruled()
    first, second = (ruled.permitted.refusal_to_publish("/", "x", "k") for _ in range(2))
    assert first is not second
    assert str(first) == str(second)


def test_a_virtual_host() -> None:
    """Whose refusal ends the connection."""
    with pytest.raises(NotAllowed, match=r"^access to vhost '/' refused for user 'guest'$"):
        Ruled().permitted.check(q.open_virtual_host("/"))


def test_one_of_several() -> None:
    """Is enough; else the first is what was refused."""
    ruled = Ruled()
    ruled.set(EVERYTHING.model_copy(update={"configure": "", "write": "", "read": "^b$"}))
    a, b = (q.look(Kind.QUEUE, "/", name) for name in "ab")
    ruled.permitted.check_one_of([a, b])
    with pytest.raises(AccessRefused, match="queue 'a'"):
        ruled.permitted.check_one_of([a])


def test_some_key() -> None:
    """A link whose messages have keys of their own begins where any key could be allowed, and only there."""
    ruled = Ruled()
    ruled.set(EVERYTHING.model_copy(update={"write": "^t$"}), TopicPermission(user="guest", exchange="t", write="^eu"))
    ruled.permitted.check_some_key(q.publish("/", "t", ""))
    with pytest.raises(AccessRefused, match="exchange 'x'"):
        ruled.permitted.check_some_key(q.publish("/", "x", ""))


def test_rules_that_want_it_are_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """ALLOW-LOG and DENY-LOG, with user, object and rule; once, as long as it is remembered."""
    ruled = Ruled()
    ruled.set(EVERYTHING, AclText(text="CONFIG DEFAULTDEFER=TRUE\nACL DENY-LOG guest PURGE QUEUE"))
    for _ in range(2):
        with pytest.raises(AccessRefused):
            ruled.permitted.check(q.of_queue(Action.PURGE, "/", "q", ()))
    written = capsys.readouterr().out
    assert written.count("a rule was followed") == 1
    assert "DENY-LOG guest PURGE QUEUE" in written


def test_groups_of_a_provider_count() -> None:
    """Users that a directory or a token puts into it; one with the name of a user on record does not get its tags."""
    rules = AclText(text="ACL ALLOW staff PURGE QUEUE\nACL DENY ALL ALL")
    staff, nobody = (Principal("alice", "ldap", frozenset(groups)) for groups in (["staff"], []))
    for signed_in, allowed in ((staff, True), (nobody, False)):
        ruled = Ruled("alice", signed_in=signed_in)
        ruled.set(rules)
        ruled.access.rules.tags["alice"] = frozenset({"administrator"})
        assert ruled.permitted._known_as().tags == frozenset()
        if allowed:
            ruled.permitted.check(q.of_queue(Action.PURGE, "/", "q", ()))
        else:
            with pytest.raises(AccessRefused):
                ruled.permitted.check(q.of_queue(Action.PURGE, "/", "q", ()))


def test_an_access_control_that_is_not_installed() -> None:
    """Is told of when a service starts, with those that there are."""
    with pytest.raises(CannotStart, match="there is no lua; there are acl, allow_all, permissions"):
        Access(["lua"])
