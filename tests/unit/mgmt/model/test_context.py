"""Variables: resolved up the tree to the environment."""

from __future__ import annotations

from typing import Any

import pytest

from services.mgmt.model.broker import Broker
from services.mgmt.model.context import interpolated, visible
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.queue import Queue
from services.mgmt.model.virtual_host import VirtualHost, VirtualHostNode


def _tree(**contexts: dict[str, str]) -> Queue:
    """A queue `q` of priorities, with variables at each level."""
    broker = Broker(None, {"name": "Broker", "context": contexts.get("broker", {})})
    broker.environment = {"HOME": "/home/somebody", "queue.priorities": "4"} if contexts.get("environment") else {}
    node = VirtualHostNode(broker, {"name": "v"})
    host = VirtualHost(node, {"name": "v", "context": contexts.get("host", {})})
    return Queue(host, {"name": "q", "type": "priority", "context": contexts.get("queue", {})})


@pytest.mark.parametrize(
    ("contexts", "priorities"),
    [
        ({}, 10),
        ({"environment": {"is": "there"}}, 4),
        ({"environment": {"is": "there"}, "broker": {"queue.priorities": "5"}}, 5),
        ({"broker": {"queue.priorities": "5"}, "host": {"queue.priorities": "6"}}, 6),
        ({"host": {"queue.priorities": "6"}, "queue": {"queue.priorities": "${mine}", "mine": "7"}}, 7),
    ],
)
def test_the_nearest_counts(contexts: dict[str, Any], priorities: int) -> None:
    """The object's own variable, else one up the tree, else the environment's, else what its class says."""
    assert _tree(**contexts).priorities == priorities


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("${this:name} in ${ancestor:virtualhost:name}", "q in v"),
        ("${ancestor:Queue:name}", "q"),
        ("costs $$5, ${nothing}", "costs $5, ${nothing}"),
        ("${this:nothing}${ancestor:port:name}", "${this:nothing}${ancestor:port:name}"),
        ("${json:quoted}", 'a \\"b\\"'),
    ],
)
def test_what_stands_for_what(text: str, means: str) -> None:
    """Attributes of the object and of those above; `$$` is a dollar; what is not known stays."""
    assert _tree(broker={"quoted": 'a "b"'}).interpolated(text) == means


def test_circles() -> None:
    """Variables that stand for each other are named, and end no process."""
    with pytest.raises(IllegalConfiguration, match="a → b → a"):
        interpolated("${a}", {"a": "${b}", "b": "${a}"}.get)


def test_doubling() -> None:
    """What grows with each step is refused before it is large."""
    bombs = {f"v{number}": f"${{v{number + 1}}}" * 10 for number in range(30)} | {"v30": "x"}
    with pytest.raises(IllegalConfiguration, match="more than"):
        interpolated("${v24}", bombs.get)


def test_doubling_of_nothing() -> None:
    """What stays short takes no time either, however often it is named: each variable is resolved once."""
    bombs = {f"v{number}": f"${{v{number + 1}}}" * 2 for number in range(200)} | {"v200": ""}
    assert interpolated("${v0}", bombs.get) == ""


def test_long_ones_side_by_side() -> None:
    """What gets too long is refused where it does, before the rest of it is put together."""
    asked: list[str] = []

    def look_up(name: str) -> str:
        asked.append(name)
        return "x" * 60_000

    with pytest.raises(IllegalConfiguration, match="more than"):
        interpolated("".join(f"${{v{number}}}" for number in range(1000)), look_up)
    assert len(asked) == 2


def test_a_circle_through_an_attribute() -> None:
    """A default that stands for itself, by way of a variable, is a circle like any other."""
    with pytest.raises(IllegalConfiguration, match="stand for each other"):
        _ = _tree(host={"queue.priorities": "${this:priorities}"}).priorities


def test_secrets_of_the_environment() -> None:
    """What is not meant for objects is no variable: it may be a secret, with any name."""
    given = {
        "HOPLINE_PASSWORD": "x",
        "MYSQL_PWD": "x",
        "HOME": "/",
        "PATH": "/",
        "HOPLINE_CONTEXT_queue.priorities": "4",
    }
    assert visible(given) == {"queue.priorities": "4"}


def test_secrets_of_objects() -> None:
    """Nor is an attribute that is secret."""
    from services.mgmt.model.authentication import User  # noqa: PLC0415

    assert User(None, {"name": "anna", "password": "x"}).interpolated("${this:password}") == "${this:password}"
