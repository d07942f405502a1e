"""RabbitMQ's permissions, as its documentation has them: https://www.rabbitmq.com/docs/access-control."""

from __future__ import annotations

import json
import time

import pytest
from pydantic import ValidationError

from services.common.access import questions as q
from services.common.access import records
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other, Principal
from services.common.access.control import decide
from services.common.access.permissions import Permissions
from services.common.access.records import Permission, TopicPermission
from services.common.access.rules import Rules
from services.common.access.words import refusal
from services.common.arguments.dead_letters import NONE, Letters
from services.rpc.store_pb2 import Record

CONTROLS = (Permissions(),)


def rules(*granted: Permission | TopicPermission) -> Rules:
    made = Rules(begun=True)
    for each in granted:
        kind = records.PERMISSION if isinstance(each, Permission) else records.TOPIC_PERMISSION
        made.apply(Record(kind=kind, key=each.key, value=each.to_json()))
    return made


def allowed(asked: Asked, *granted: Permission | TopicPermission, tags: tuple[str, ...] = ()) -> bool:
    return decide(CONTROLS, Principal("anna", tags=frozenset(tags)), asked, rules(*granted)).allowed


def told(asked: Asked, *granted: Permission | TopicPermission) -> str:
    anna = Principal("anna")
    return refusal(anna, asked, decide(CONTROLS, anna, asked, rules(*granted)))


def on(**expressions: str) -> Permission:
    return Permission(user="anna", virtual_host="/", **expressions)


def exact(name: str) -> str:
    return f"^{name}$"


QUEUE = Other(Kind.QUEUE, "q")
KEY = ((Property.ROUTING_KEY, "k"),)
OPERATIONS = {
    "exchange.declare": (q.create_exchange("/", "x", None, ()), {"configure": ["x"]}),
    "exchange.declare with AE": (
        q.create_exchange("/", "x", "ae", ()),
        {"configure": ["x"], "read": ["x"], "write": ["ae"]},
    ),
    "exchange.delete": (q.delete_exchange("/", "x"), {"configure": ["x"]}),
    "queue.declare": (q.create_queue("/", "q", NONE, ()), {"configure": ["q"]}),
    "queue.declare with DLX": (
        q.create_queue("/", "q", Letters("dlx"), ()),
        {"configure": ["q"], "read": ["q"], "write": ["dlx"]},
    ),
    "queue.delete": (q.of_queue(Action.DELETE, "/", "q", ()), {"configure": ["q"]}),
    "exchange.bind": (
        q.bind(Action.BIND, "/", "source", Other(Kind.EXCHANGE, "to"), KEY),
        {"write": ["to"], "read": ["source"]},
    ),
    "queue.bind": (q.bind(Action.BIND, "/", "x", QUEUE, KEY), {"write": ["q"], "read": ["x"]}),
    "queue.unbind": (q.bind(Action.UNBIND, "/", "x", QUEUE, KEY), {"write": ["q"], "read": ["x"]}),
    "basic.publish": (q.publish("/", "x", "k"), {"write": ["x"]}),
    "basic.publish to the default exchange": (q.publish("/", "", "k"), {"write": ["amq.default"]}),
    "basic.get, basic.consume": (q.of_queue(Action.CONSUME, "/", "q", ()), {"read": ["q"]}),
    "queue.purge": (q.of_queue(Action.PURGE, "/", "q", ()), {"read": ["q"]}),
}
"""RabbitMQ's table of operations, and which names need which permission."""


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_an_operation_needs(operation: str) -> None:
    """With exactly what the table says it is allowed; without any one part of it, it is not."""
    asked, needs = OPERATIONS[operation]
    enough = {kind: "|".join(map(exact, names)) for kind, names in needs.items()}
    assert allowed(asked, on(**enough))
    for missing in needs:
        everything = dict.fromkeys(("configure", "write", "read"), ".*")
        assert not allowed(asked, on(**{**everything, missing: "^other$"})), missing
        assert not allowed(asked, on(**{**everything, missing: ""})), missing


def test_no_permission() -> None:
    """A user without one in a virtual host may do nothing in it, not even open it; an empty one lets it open it."""
    everything = Permission(user="anna", virtual_host="/other", configure=".*", write=".*", read=".*")
    for asked, _ in OPERATIONS.values():
        assert not allowed(asked, everything)
    assert not allowed(q.open_virtual_host("/"), everything)
    assert allowed(q.open_virtual_host("/"), on())


def test_everywhere() -> None:
    """A permission without a virtual host counts in all where there is none of its own."""
    everywhere = Permission(user="anna", configure=".*", write=".*", read=".*")
    publish = q.publish("/", "x", "k")
    assert allowed(publish, everywhere)
    assert allowed(q.open_virtual_host("/"), everywhere)
    assert not allowed(publish, everywhere, on(write="^y$"))
    assert not allowed(publish, everywhere.model_copy(update={"user": "bob"}))


@pytest.mark.parametrize(
    ("expression", "name", "fits"),
    [
        ("", "", True),
        ("", "q", False),
        ("^$", "q", False),
        ("ob", "bob", True),
        ("^(?!secret)", "secret.q", False),
        ("^(?!secret)", "q", True),
        ("^[[:alpha:]]+$", "abc", True),
        (r"^amq\.gen.*|amq\.default$", "amq.gen-JzTY20BRgKO", True),
    ],
)
def test_expressions(expression: str, name: str, *, fits: bool) -> None:
    """Are PCRE's, found anywhere in a name; the empty one is '^$', as RabbitMQ has it."""
    assert allowed(q.of_queue(Action.CONSUME, "/", name, ()), on(read=expression)) is fits


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("^(a+)+$", "a" * 200 + "!"),
        (f"^{'(a|a)' * 40}$", "a" * 40 + "!"),
        ("^a.*b.*c$", "ab" * 32_000),
    ],
)
def test_an_expression_without_end(expression: str, name: str) -> None:
    """One that would take for ever is given up after a moment, and fits nothing: also of a name of AMQP 1.0."""
    begun = time.process_time()
    assert not allowed(q.of_queue(Action.CONSUME, "/", name, ()), on(read=expression))
    assert time.process_time() - begun < 1


LARGE = "((q{200}){200}){200}"


@pytest.mark.parametrize("expression", [LARGE, "(" * 60 + ")" * 60, "(?R)?q", "q" * 4097])
def test_an_expression_that_is_too_large(expression: str) -> None:
    """To be made, is refused before it is; so is one that no clock stops."""
    begun = time.process_time()
    with pytest.raises(ValidationError):
        on(read=expression)
    assert time.process_time() - begun < 1


def test_what_was_on_record_before_there_was_a_bound() -> None:
    """Is read, and what is too large of it fits nothing; the rest counts."""
    made = Rules(begun=True)
    value = json.dumps({"user": "anna", "virtual_host": "/", "read": LARGE, "write": "q", "configure": "("})
    made.apply(Record(kind=records.PERMISSION, key=records.permission_key("anna", "/"), value=value.encode()))
    anna = Principal("anna")
    assert not decide(CONTROLS, anna, q.of_queue(Action.CONSUME, "/", "q" * 255, ()), made).allowed
    assert decide(CONTROLS, anna, q.publish("/", "q", "k"), made).allowed


def test_server_named_queues() -> None:
    """Permission to declare them is given by how their names begin."""
    declare = q.create_queue("/", "", NONE, ())
    assert allowed(declare, on(configure=r"^amq\.gen-.*$"))
    assert not allowed(declare, on(configure="^orders"))


def test_to_look() -> None:
    """A passive declare needs any permission on the name."""
    look = q.look(Kind.QUEUE, "/", "q")
    for kind in ("configure", "write", "read"):
        assert allowed(look, on(**{kind: "^q$"}))
    assert not allowed(look, on(configure="^x$", write="^x$", read="^x$"))


# ------------------------------------------------------------------ topic permissions


def test_topic_permissions() -> None:
    """Restrict keys of that exchange: write those of publishes, read those of bindings. Without any, all are free."""
    everything = on(configure=".*", write=".*", read=".*")
    topic = TopicPermission(user="anna", exchange="t", write="^eu\\.", read="^us\\.")
    bind = q.bind(Action.BIND, "/", "t", QUEUE, ((Property.ROUTING_KEY, "eu.x"),))
    assert allowed(q.publish("/", "t", "eu.x"), everything, topic)
    assert not allowed(q.publish("/", "t", "us.x"), everything, topic)
    assert not allowed(bind, everything, topic)
    assert allowed(q.publish("/", "other", "us.x"), everything, topic)
    assert not allowed(q.publish("/", "t", "eu.x"), on(), topic)


def test_variables_of_topic_permissions() -> None:
    """`{username}` and `{vhost}` stand for what they say, and for nothing else: "a.b" is no expression."""
    topic = TopicPermission(user="a.b", exchange="t", write="^{username}-{vhost}$")
    permission = Permission(user="a.b", virtual_host="/", write=".*")
    for key, fits in (("a.b-/", True), ("axb-/", False)):
        verdict = decide(CONTROLS, Principal("a.b"), q.publish("/", "t", key), rules(permission, topic))
        assert (verdict.allowed, verdict.by_key) == (fits, True)


# ------------------------------------------------------------------ words


def test_words() -> None:
    """What is refused is named in RabbitMQ's words, the part that was missing and no more."""
    everything = on(configure=".*", write=".*", read=".*")
    assert (
        told(q.publish("/", "", "k")) == "write access to exchange 'amq.default' in vhost '/' refused for user 'anna'"
    )
    dead_letters = q.create_queue("/", "q", Letters("dlx"), ())
    assert told(dead_letters) == "configure access to queue 'q' in vhost '/' refused for user 'anna'"
    missing = on(configure=".*", read=".*")
    assert told(dead_letters, missing) == "write access to exchange 'dlx' in vhost '/' refused for user 'anna'"
    topic = TopicPermission(user="anna", exchange="t", write="^eu")
    assert told(q.publish("/", "t", "us"), everything, topic) == (
        "write access to topic 'us' in exchange 't' in vhost '/' refused for user 'anna'"
    )
    assert told(q.open_virtual_host("/")) == "access to vhost '/' refused for user 'anna'"
    assert told(Asked(Action.DELETE, Kind.USER, "bob")) == "delete access to user 'bob' refused for user 'anna'"


# ------------------------------------------------------------------ tags


MANAGEMENT = Asked(Action.ACCESS, Kind.MANAGEMENT)
OBSERVE = Asked(Action.ACCESS_LOGS, Kind.BROKER)
CONFIGURE = Asked(Action.CONFIGURE, Kind.BROKER)
USERS = Asked(Action.CREATE, Kind.USER, "bob")


@pytest.mark.parametrize(
    ("tag", "may"),
    [
        ("administrator", {MANAGEMENT, OBSERVE, CONFIGURE, USERS}),
        ("monitoring", {MANAGEMENT, OBSERVE}),
        ("policymaker", {MANAGEMENT}),
        ("management", {MANAGEMENT}),
        ("other", set()),
    ],
)
def test_tags(tag: str, may: set[Asked]) -> None:
    """Are for what is beyond messaging; an administrator without permissions may not publish."""
    for asked in (MANAGEMENT, OBSERVE, CONFIGURE, USERS):
        assert allowed(asked, tags=(tag,)) is (asked in may)
    assert not allowed(q.publish("/", "x", "k"), tags=(tag,))


@pytest.mark.parametrize("expression", [f"^{'a?' * 40}{'a' * 40}$", "^(a|aa)+$", "^(a*)*$", "^a*a*a*a*a*b$"])
def test_expressions_that_try_everything(expression: str) -> None:
    """Are given up as well, however they are written."""
    began = time.process_time()
    assert not allowed(q.of_queue(Action.CONSUME, "/", "a" * 39 + "!", ()), on(read=expression))
    assert time.process_time() - began < 1
