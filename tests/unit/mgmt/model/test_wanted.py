"""What is said of an object, held against its declaration."""

from __future__ import annotations

from typing import Any

import pytest

from services.mgmt.model.authentication import User
from services.mgmt.model.broker import Broker
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.exchange import Exchange
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.groups import Group
from services.mgmt.model.port import Port
from services.mgmt.model.queue import Queue
from services.mgmt.model.rendering import Options, rendered
from services.mgmt.model.virtual_host import VirtualHost
from services.mgmt.model.wanted import arguments_for, to_create, to_update

BROKER = Broker(None, {"name": "Broker", "context": {"depth": "7"}})


@pytest.mark.parametrize(
    ("kind", "said", "wanted"),
    [
        (Queue, {"name": "q", "durable": "false"}, {"name": "q", "durable": False}),
        (Queue, {"name": "q", "maximumMessageTtl": "60"}, {"name": "q", "maximumMessageTtl": 60}),
        (Queue, {"name": "q", "maximumMessageTtl": "${depth}"}, {"name": "q", "maximumMessageTtl": 7}),
        (Queue, {"name": "${depth}", "description": "${depth}"}, {"name": "${depth}", "description": "${depth}"}),
        (Queue, {"name": "q", "arguments": '{"a": 1}'}, {"name": "q", "arguments": {"a": 1}}),
        (User, {"name": "u", "password": "${depth}"}, {"name": "u", "password": "${depth}"}),
    ],
)
def test_read(kind: type[ConfiguredObject], said: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Texts are read as what is declared; variables count, but in names, in secrets, and in what is kept as it is."""
    assert to_create(kind, said, BROKER) == wanted


@pytest.mark.parametrize(
    ("kind", "said", "why"),
    [
        (Queue, {"name": ""}, "attribute 'name' of Queue: it is mandatory"),
        (Queue, {"name": "q", "nonsense": 1}, "attribute 'nonsense' of Queue: there is none of that name"),
        (
            Queue,
            {"name": "q", "durable": "maybe"},
            "attribute 'durable' of Queue: true or false is wanted, not 'maybe'",
        ),
        (Queue, {"name": "q", "maximumMessageTtl": 1.5}, "an integer is wanted, not 1.5"),
        (Queue, {"name": "q", "maximumMessageTtl": True}, "an integer is wanted, not True"),
        (Queue, {"name": "q", "overflowPolicy": "FLOW_TO_DISK"}, "ALTERNATE, PRODUCER_FLOW_CONTROL is wanted"),
        (Queue, {"name": "q", "partition": 3}, "attribute 'partition' of Queue: it is derived, nobody sets it"),
        (Queue, {"name": "q", "context": {"a": 1}}, "attribute 'context' of Queue: texts are wanted"),
        (Exchange, {"name": "e"}, "attribute 'type' of Exchange: it is mandatory"),
        (Port, {"name": "p", "port": 1, "transports": ["WSS"]}, "one of TCP, SSL, WS is wanted, not 'WSS'"),
        (VirtualHost, {"name": "v", "type": "BDB"}, "attribute 'type' of VirtualHost: one of ProvidedStore is wanted"),
        (Group, {"name": "g", "durable": False}, "attribute 'durable' of Group: it is true of all of them"),
        (
            Port,
            {"name": "p", "port": 1, "lifetimePolicy": "DELETE_ON_NO_LINKS"},
            "attribute 'lifetimePolicy' of Port: it is PERMANENT of all of them",
        ),
        (User, {"name": "u"}, "attribute 'password' of User: it is mandatory"),
        (User, {"name": "u", "password": ["hunter2"]}, "attribute 'password' of User: a text is wanted$"),
    ],
)
def test_refused(kind: type[ConfiguredObject], said: dict[str, Any], why: str) -> None:
    """What cannot be is told with its attribute and what is wanted; a secret is not repeated."""
    with pytest.raises(IllegalConfiguration, match=why):
        to_create(kind, said, BROKER)


def test_updates() -> None:
    """Only what differs is a change; what is fixed may be said again as it is, and not otherwise."""
    queue = Queue(BROKER, {"name": "q", "durable": True})
    assert to_update(queue, {"name": "q", "durable": "true", "description": "new"}) == {"description": "new"}
    with pytest.raises(IllegalConfiguration, match="attribute 'durable' of Queue 'q': it is fixed when it is created"):
        to_update(queue, {"durable": False})


def test_null() -> None:
    """Is as if nobody had set it; of what is fixed, and of a secret, it says nothing."""
    queue = Queue(
        BROKER, {"name": "q", "alternateBinding": {"destination": "x"}, "maximumMessageTtl": 5, "type": "lvq"}
    )
    nulls = {"alternateBinding": None, "maximumMessageTtl": None, "overflowPolicy": None, "type": None}
    assert to_update(queue, nulls) == {"alternateBinding": {}, "maximumMessageTtl": 0}
    assert to_update(User(BROKER, {"name": "u", "password": "hunter2"}), {"password": None}) == {}


def test_masked() -> None:
    """A secret is masked for every user, and one that comes back masked stays as it is."""
    user = User(BROKER, {"name": "u", "password": "hunter2"})
    for options in (Options(), Options(actuals=True)):
        assert rendered(user, options, lambda _: {})["password"] == "********"
    assert to_update(user, {"password": "********"}) == {}
    assert to_update(user, {"password": "hunter2"}) == {"password": "hunter2"}


def test_actuals() -> None:
    """Are what was set, as it was set, and nothing else."""
    queue = Queue(BROKER, {"name": "q", "description": "${depth}"})
    assert rendered(queue, Options(actuals=True), lambda _: {}) == {
        "name": "q",
        "description": "${depth}",
    }
    assert rendered(queue, Options(), lambda _: {})["description"] == "7"


def test_inherited_context() -> None:
    """Variables from above are told where they are asked for."""
    queue = Queue(BROKER, {"name": "q"})
    assert "context" not in rendered(queue, Options(), lambda _: {})
    told = rendered(queue, Options(exclude_inherited_context=False), lambda _: {})
    assert told["context"]["depth"] == "7"


def test_operations() -> None:
    """Arguments are read as declared, and named where they are missing or unknown."""
    exchange = Exchange(BROKER, {"name": "e", "type": "direct"})
    told = arguments_for(exchange, "bind", {"destination": "q", "replaceExistingArguments": "true"})
    assert told == {"destination": "q", "bindingKey": "", "arguments": {}, "replaceExistingArguments": True}
    for said, why in (({}, "'destination' of bind: it is mandatory"), ({"x": 1}, "'x' of bind: there is none")):
        with pytest.raises(IllegalConfiguration, match=why):
            arguments_for(exchange, "bind", said)
