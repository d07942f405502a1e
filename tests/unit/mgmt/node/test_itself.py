"""What the management node says of itself and of objects, by vectors of Broker-J's tests and its source."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from services.common.errors import SyntaxFault
from services.mgmt.model.queue import Queue
from services.mgmt.node import exchanged, itself
from services.mgmt.node.exchanged import Asked
from services.mgmt.node.itself import _counted, _offset
from services.mgmt.node.places import names_in, path_of
from tests.unit.mgmt.node.conftest import Managed


async def test_types_attributes_and_operations(managed: Managed) -> None:
    """Of all types that are in a virtual host, or of one and those that it stands for; Port is the broker's."""
    ask = managed.ask.itself
    types = (await ask("GET-TYPES")).body
    assert types["org.amqp.management"] == types["org.apache.qpid.Queue"] == []
    assert types["org.apache.qpid.StandardQueue"] == ["org.apache.qpid.Queue"]
    assert types["org.apache.qpid.HeadersExchange"] == ["org.apache.qpid.Exchange"]
    assert {"org.apache.qpid.VirtualHost", "org.apache.qpid.Consumer"} <= types.keys()
    assert "org.apache.qpid.Port" not in types
    some = (await ask("GET-TYPES", entityType="org.apache.qpid.Queue")).body
    assert some.keys() == {"org.apache.qpid.Queue", "org.apache.qpid.StandardQueue", "org.apache.qpid.PriorityQueue"}
    attributes = (await ask("GET-ATTRIBUTES")).body
    assert "priorities" in attributes["org.apache.qpid.PriorityQueue"]
    assert "priorities" not in attributes["org.apache.qpid.StandardQueue"]
    assert attributes["org.apache.qpid.Queue"] == list(Queue.attributes)
    operations = (await ask("GET-OPERATIONS", entityType="org.apache.qpid.FanoutExchange")).body
    assert operations["org.apache.qpid.FanoutExchange"]["unbind"] == ["destination", "bindingKey"]
    assert (await ask("GET-OPERATIONS", entityType="org.amqp.management")).body == {"org.amqp.management": {}}
    assert (await ask("GET-MGMT-NODES"))[:] == (200, "OK", [])
    assert (await ask("GET-TYPES", entityType="org.apache.qpid.None")).status == 400


async def test_query(managed: Managed) -> None:
    """Rows of the attributes that are asked for, which may be a JSON list in a text; a part of them; by type; what is
    in other virtual hosts is not told.
    """
    ask, names = managed.ask.itself, '["name", "identity", "type"]'
    everything = (await ask("QUERY")).body
    assert everything["attributeNames"][:4] == ["identity", "type", "qpid-type", "object-path"]
    assert {"name", "queue", "bindings", "priorities"} <= set(everything["attributeNames"])
    assert all(len(row) == len(everything["attributeNames"]) for row in everything["results"])
    exchanges = (await ask("QUERY", {"attributeNames": names}, entityType="org.apache.qpid.Exchange")).body
    assert exchanges["attributeNames"] == ["name", "identity", "type"]
    assert [row[0] for row in exchanges["results"]] == [
        "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.topic",
    ]  # fmt: skip
    direct = (await ask("QUERY", {"attributeNames": names}, entityType="org.apache.qpid.DirectExchange")).body
    assert direct["results"] == exchanges["results"][:1]
    page = await ask("QUERY", {"attributeNames": ["name"]}, entityType="org.apache.qpid.Exchange", offset=1, count="2")
    assert page.body["results"] == [["amq.fanout"], ["amq.headers"]]
    assert (await ask("QUERY", [], entityType="org.apache.qpid.Exchange"))[:2] == (
        400, "Body of a QUERY operation must be a map",
    )  # fmt: skip
    assert (await ask("QUERY", {"attributeNames": [1]})).status == 400
    assert (await ask("QUERY", entityType="org.apache.qpid.Port")).status == 400
    await managed.rest("/api/latest/virtualhost/other/other", "guest:guest", "PUT", {})
    await managed.rest("/api/latest/queue/other/other/theirs", "guest:guest", "PUT", {})
    assert (await ask("QUERY", {}, entityType="org.apache.qpid.Queue")).body["results"] == []


async def test_consumers(managed: Managed) -> None:
    """Are below their queue: their object path and the attribute `queue` say so."""
    client = await managed.house.connect()
    await client.declare("a/q", durable=True)
    await client.consume("a/q", "mine")
    names = ["object-path", "queue", "name"]
    rows: list[list[str]] = []
    for _ in range(100):
        told = await managed.ask.itself("QUERY", {"attributeNames": names}, entityType="org.apache.qpid.Consumer")
        if rows := told.body["results"]:
            break
    [[path, queue, name]] = rows
    assert (queue, names_in(path)) == ("a/q", ("a/q", name))
    assert (await managed.ask("READ", type="org.apache.qpid.Consumer", index="object-path", key=path)).status == 200


async def test_more_than_a_message_should_hold(managed: Managed) -> None:
    """Is not answered (413), but how to ask for less is."""
    with patch.object(exchanged, "LARGEST", 100):
        status, description, body = await managed.ask.itself("QUERY")
    assert (status, "offset, count" in description, body) == (413, True, None)


async def test_names_are_told_once(managed: Managed) -> None:
    """Repeated names count once: the answer grows with the objects, not with the request."""
    exchanges = {"entityType": "org.apache.qpid.Exchange"}
    told = await managed.ask.itself("QUERY", {"attributeNames": ["name", "none", "name"] * 100_000}, **exchanges)
    assert (told.body["attributeNames"], told.body["results"][0]) == (["name", "none"], ["amq.direct", None])
    many = {"attributeNames": [str(number) for number in range(301)]}
    assert (await managed.ask.itself("QUERY", many, **exchanges))[:2] == (
        400, "attributeNames: no more than 300 of them",
    )  # fmt: skip


async def test_what_is_too_much_is_found_while_it_is_made(managed: Managed) -> None:
    """Of thousands of objects no more are told than one message should hold."""
    with patch.object(exchanged, "LARGEST", 100), patch.object(itself, "told", wraps=itself.told) as told:
        assert (await managed.ask.itself("QUERY", entityType="org.apache.qpid.Exchange")).status == 413
    assert told.call_count == 1


@pytest.mark.parametrize(("offset", "found"), [(None, "abc"), (0, "abc"), (2, "c"), (9, ""), (-1, "c"), (-9, "abc")])
def test_offset(offset: int | None, found: str) -> None:
    """Below zero it counts from the end."""
    assert "".join(_offset(list("abc"), offset)) == found  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "found"), [(None, "abc"), (0, ""), (2, "ab"), (9, "abc"), (-1, "ab"), (-9, "abc")])
def test_count(count: int | None, found: str) -> None:
    """Below zero it leaves out so many at the end; more than there are is all, where Broker-J answers none."""
    assert "".join(_counted(list("abc"), count)) == found  # type: ignore[arg-type]


@pytest.mark.parametrize("names", [(), ("q",), ("a/b", "c"), ("a\\b", "/", "\\/\\"), ("a\nb",)])
def test_object_paths(names: tuple[str, ...]) -> None:
    """A slash or a backslash in a name is escaped; names come back as they were."""
    assert names_in(path_of(names)) == names


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"[]",
        b'{"properties": 1}',
        b"{}",
        b"\xff",
        b'{"properties": {"a": NaN}}',
        b'{"properties": {"a": "\\ud800"}}',
    ],
)
def test_no_request(said: bytes) -> None:
    """What is no request is a typed error, not a fault of the service."""
    with pytest.raises(SyntaxFault, match="no request"):
        Asked.from_json("/", said)
