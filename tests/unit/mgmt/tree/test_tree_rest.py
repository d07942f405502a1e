"""Broker-J's REST at a whole broker: what is changed is what clients meet, and what clients do is what is told."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from pamqp import commands

from services.common.authentication.principal import Principal
from services.common.errors import NotFound
from services.mgmt.access.guard import Guard
from services.mgmt.tree import recent
from services.mgmt.tree.purging import Purging
from services.rpc.store_pb2 import Lease, LeaseTable, Member
from tests.unit.mgmt.tree.conftest import HOST, Managed


async def test_a_queue(managed: Managed) -> None:
    """Is created (201, where it is), read, described anew (200), found again, and deleted, once."""
    path = f"queue/{HOST}/q"
    limits = {"maximumQueueDepthMessages": 5, "overflowPolicy": "RING"}
    assert (await managed.headers("PUT", path, limits))["Location"] == f"/api/latest/{path}"
    status, told = await managed("GET", path)
    assert (status, told["name"], told["maximumQueueDepthMessages"], told["type"]) == (200, "q", 5, "standard")
    status, told = await managed("PUT", path, {"description": "${this:name}, for tests"})
    assert (status, told["description"], told["createdBy"]) == (200, "q, for tests", "guest")
    status, told = await managed("PUT", path, {"maximumDistinctGroups": 6})
    assert (status, "fixed when it is created" in told["errorMessage"]) == (422, True)
    client = await managed.house.connect()
    assert (
        await client.declare("q", durable=True, arguments={"qpid.max_count": 5, "qpid.policy_type": "RING"})
    ).queue == "q"
    assert [await managed("DELETE", path) for _ in range(2)] == [(200, None), (404, {"errorMessage": "no Queue 'q'"})]


async def test_an_exchange_and_its_bindings(managed: Managed) -> None:
    """Messages go by a binding that was made here; it is told; there is none when it was removed."""
    await managed("POST", f"queue/{HOST}", {"name": "q"})
    assert (await managed("PUT", f"exchange/{HOST}/e", {"type": "topic"}))[0] == 201
    binding = {"destination": "q", "bindingKey": "a.#", "arguments": {"note": "x"}}
    assert await managed("POST", f"exchange/{HOST}/e/bind", binding) == (200, True)
    assert await managed("POST", f"exchange/{HOST}/e/bind", binding) == (200, False)
    told = (await managed("GET", f"exchange/{HOST}/e"))[1]
    assert told["bindings"] == told["durableBindings"] == [{"name": "a.#", **binding}]
    client = await managed.house.connect()
    client.publish(b"m", "a.b", exchange="e")
    assert await managed(
        "POST", f"exchange/{HOST}/e/bind", {**binding, "arguments": {}, "replaceExistingArguments": True}
    ) == (
        200,
        True,
    )
    assert [each["arguments"] for each in (await managed("GET", f"exchange/{HOST}/e"))[1]["bindings"]] == [{}]
    for gone in (True, False):
        unbind = {"destination": "q", "bindingKey": "a.#"}
        assert await managed("POST", f"exchange/{HOST}/e/unbind", unbind) == (200, gone)
    assert (await managed("GET", f"exchange/{HOST}/e"))[1]["bindings"] == []
    assert await managed("POST", f"queue/{HOST}/q/clearQueue", {}) == (200, 1)
    assert (await managed("DELETE", f"exchange/{HOST}/e"))[0] == 200
    assert (await managed("DELETE", f"exchange/{HOST}/amq.direct"))[0] == 403


async def test_users_and_groups(managed: Managed) -> None:
    """A user that was made here signs in with the password, which is never shown; a group has the given members."""
    assert (await managed("PUT", "user/internal/anna", {"tags": ["monitoring"]}))[0] == 422
    told = (await managed("PUT", "user/internal/anna", {"password": "hunter2", "tags": ["monitoring"]}))[1]
    assert (told["password"], told["tags"], "hunter2" in str(told)) == ("********", ["monitoring"], False)
    assert (await managed("GET", "queue", user="anna:hunter2"))[0] == 200
    assert (await managed("GET", "user", user="anna:hunter2"))[0] == 403
    assert (await managed("POST", "user/internal/anna", {"password": "other"}))[0] == 200
    assert (await managed("GET", "queue", user="anna:other"))[0] == 200
    assert (await managed("PUT", "group/internal/staff", {}))[0] == 201
    assert (await managed("PUT", "groupmember/internal/staff/anna", {}))[0] == 201
    assert (await managed("GET", "group/internal/staff"))[1]["statistics"] == {"memberCount": 1}
    assert (await managed("DELETE", "user/internal/anna"))[0] == 200
    assert (await managed("GET", "groupmember/internal/staff"))[1] == []
    assert (await managed("POST", "user/internal/anna", {"tags": []}))[0] == 404


async def test_ports_and_virtual_hosts(managed: Managed) -> None:
    """A port and a virtual host are made, changed and deleted; what none can be is told with its attribute."""
    assert (await managed("PUT", "port/inner", {"port": 5699, "protocols": ["AMQP_1_0"]}))[0] == 201
    told = (await managed("PUT", "port/inner", {"maxOpenConnections": 7}))[1]
    assert (told["port"], told["maxOpenConnections"], told["protocols"]) == (5699, 7, ["AMQP_1_0"])
    status, told = await managed("PUT", "port/inner", {"protocols": ["AMQP_0_9_1"]})
    assert (status, "comes AMQP_0_8, AMQP_0_9" in told["errorMessage"]) == (422, True)
    assert (await managed("PUT", "port/amqp", {"port": 5700}))[0] == 403
    assert (await managed("DELETE", "port/inner"))[0] == 200
    assert (await managed("PUT", "virtualhost/x/x", {"description": "of tests"}))[0] == 201
    assert [each["name"] for each in (await managed("GET", "virtualhostnode"))[1]] == ["/", "x"]
    assert (await managed("PUT", "virtualhost/x/x", {"context": {"a": "1"}}))[1]["context"] == {"a": "1"}
    for method, path, body in (
        ("PUT", "virtualhost/x/x", {"context": {"a": "1", "": "2"}}),
        ("POST", "virtualhost/x/x/setContextVariable", {"name": "", "value": "2"}),
    ):
        assert (await managed(method, path, body))[0] == 422
    assert (await managed("GET", "virtualhost/x/x"))[1]["context"] == {"a": "1"}
    assert (await managed("DELETE", "virtualhost/x/x"))[0] == 200
    assert (await managed("GET", "virtualhost/x"))[0] == 404


async def test_counts_and_consumers(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics are what clients have done: messages that wait, that are delivered, and their consumers."""
    monkeypatch.setattr(recent, "OLDEST", 0.0)
    client = await managed.house.connect()
    await client.declare("q", durable=True)
    for _ in range(5):
        client.publish(b"m", "q")
    await client.prefetch(2)
    await client.consume("q", "mine")
    await client.bodies(2)
    told = (await managed("GET", f"queue/{HOST}/q"))[1]["statistics"]
    counted = {name: told[name] for name in ("queueDepthMessages", "availableMessages", "unacknowledgedMessages")}
    assert counted == {"queueDepthMessages": 5, "availableMessages": 3, "unacknowledgedMessages": 2}
    assert told["queueDepthBytes"] >= 5
    [consumer] = (await managed("GET", f"consumer/{HOST}/q"))[1]
    assert (consumer["linkName"], consumer["settlementMode"], consumer["suspended"]) == ("mine", "MANUAL", True)
    assert await managed("GET", f"queue/{HOST}/q/getConsumers") == (200, [consumer["name"]])
    assert await managed("GET", f"queue/{HOST}/q/getStatistics?statistics=consumerCount") == (200, {"consumerCount": 1})
    assert await managed("POST", f"queue/{HOST}/q/clearQueue", {}) == (200, 3)
    assert (await managed("GET", f"queue/{HOST}/q/clearQueue"))[0] == 405
    assert (await managed.headers("GET", f"queue/{HOST}/q/clearQueue"))["Allow"] == "POST"


async def test_lists(managed: Managed) -> None:
    """Wildcards, filters, order and pages; depth tells what is below; what is no attribute is named."""
    for number in range(5):
        await managed("PUT", f"queue/{HOST}/q{number}", {"durable": number % 2 == 0})
    assert {each["name"] for each in (await managed("GET", "queue/*/*/q3"))[1]} == {"q3"}
    durable = (await managed("GET", f"queue/{HOST}?durable=true&orderBy=name%20desc"))[1]
    assert [each["name"] for each in durable] == ["q4", "q2", "q0"]
    page = "queue?orderBy=queueDepthMessages,name&limit=2&offset=1"
    assert [each["name"] for each in (await managed("GET", page))[1]] == ["q1", "q2"]
    assert (await managed.headers("GET", page))["X-Total-Count"] == "5"
    assert [each["name"] for each in (await managed("GET", "queue?name=q1&name=q2&orderBy=name"))[1]] == ["q1", "q2"]
    [host] = (await managed("GET", "virtualhost?depth=1"))[1]
    assert len(host["queues"]) == 5
    status, told = await managed("GET", "queue?nonsense=1")
    assert (status, told["errorMessage"]) == (422, "Queue has neither an attribute nor a statistic 'nonsense'")
    assert (await managed("DELETE", f"queue/{HOST}"))[0] == 422
    assert (await managed("DELETE", f"queue/{HOST}?durable=false"))[0] == 200
    assert len((await managed("GET", "queue"))[1]) == 3
    assert (await managed("DELETE", f"queue/{HOST}?durable=false"))[0] == 404


@pytest.mark.parametrize("name", ["a/b", "100%", "a%2Fb", "a\nb", "ü +", "${HOME}"])
async def test_names(managed: Managed, name: str) -> None:
    """Are used as they are, with any content, where they are encoded twice; a variable in one is not replaced."""
    twice = quote(quote(name, safe=""), safe="")
    assert (await managed.headers("PUT", f"queue/{HOST}/{twice}", {}))["Location"].endswith(f"/{twice}")
    assert (await managed("GET", f"queue/{HOST}/{twice}"))[1]["name"] == name
    assert (await managed("DELETE", f"queue/{HOST}/{twice}"))[0] == 200


async def test_variables(managed: Managed) -> None:
    """Are set, count below at once, and are removed; the former value is the answer."""
    variable = {"name": "deep", "value": "3"}
    assert await managed("POST", "broker/setContextVariable", variable) == (200, None)
    limits = {"maximumQueueDepthMessages": "${deep}", "overflowPolicy": "REJECT"}
    assert (await managed("PUT", f"queue/{HOST}/q", limits))[1]["maximumQueueDepthMessages"] == 3
    assert await managed("POST", "broker/removeContextVariable", {"name": "deep"}) == (200, "3")
    assert "context" not in (await managed("GET", "broker"))[1]


async def test_variables_without_sense(managed: Managed) -> None:
    """Of one object leave out that attribute: it is told as it was set, and so are all the others."""
    await managed("PUT", f"queue/{HOST}/circle", {"description": "${this:description}"})
    await managed("PUT", f"queue/{HOST}/text", {"type": "priority", "context": {"queue.priorities": "many"}})
    assert (await managed("PUT", f"queue/{HOST}/text", {"description": "of texts"}))[0] == 200
    status, told = await managed("GET", "queue?orderBy=priorities,name")
    assert (status, [each["name"] for each in told]) == (200, ["circle", "text"])
    assert (told[0].get("description"), told[1]["description"]) == (None, "of texts")
    actual = (await managed("GET", f"queue/{HOST}/circle?actuals=true"))[1]
    assert actual["description"] == "${this:description}"


async def test_who_may(managed: Managed) -> None:
    """A user with a tag makes those queues that its permission allows, and no others."""
    await managed("PUT", "user/internal/mona", {"password": "x", "tags": ["management"]})
    terms = {"configure": "^mine", "write": "", "read": ""}
    assert (await managed.ask("/api/access/permissions/mona", "guest:guest", "PUT", terms))[0] == 200
    for _ in range(50):  # a moment later management has heard of it
        if (await managed("PUT", f"queue/{HOST}/mine", {}, "mona:x"))[0] == 201:
            break
    assert (await managed("PUT", f"queue/{HOST}/others", {}, "mona:x"))[0] == 403
    assert (await managed("DELETE", f"queue/{HOST}/mine", None, "mona:x"))[0] == 200
    assert (await managed("PUT", "port/mine", {"port": 5699}, "mona:x"))[0] == 403


async def test_broken_bodies(managed: Managed) -> None:
    """What is no JSON, or no map, is told as such (400), and nothing is done."""
    for body, why in (([1], "the body is no map"), ("text", "the body is no map")):
        assert await managed("PUT", f"queue/{HOST}/q", body) == (400, {"errorMessage": why})
    for body in ({"description": "\ud800"}, {"arguments": {"x": float("nan")}}):
        assert (await managed("PUT", f"queue/{HOST}/q", body))[0] == 400
    assert (await managed("PUT", f"queue/{HOST}", {}))[0] == 422
    for path in (f"queue/{HOST}/q/x/y", "queue/nobody"):
        assert (await managed("PUT", path, {}))[0] == 404
    assert (await managed("GET", f"queue/{HOST}/q"))[0] == 404


async def test_metadata_and_structure(managed: Managed) -> None:
    """Categories and types with their attributes; objects by name."""
    _, told, _ = await managed.ask("/service/metadata")
    assert told["Queue"]["priority"]["attributes"]["priorities"]["defaultValue"] == "${queue.priorities}"
    assert "priorities" not in told["Queue"]["standard"]["attributes"]
    assert told["User"]["managed"]["attributes"]["password"] == {
        "type": "String", "mandatory": True, "secure": True,
        "description": "in clear, or as `credentialKind` makes it where `hashed`",
    }  # fmt: skip
    _, told, _ = await managed.ask("/service/structure")
    assert [each["name"] for each in told["virtualhostnodes"]] == ["/"]


async def test_queries(managed: Managed) -> None:
    """Select, where and orderBy, of all the tree or one virtual host, by GET and by POST, as JSON and as CSV."""
    for name in ("a", "b"):
        await managed("PUT", f"queue/{HOST}/{name}", {})
    wanted = {"select": "name, $parent.name AS host, bindingCount", "orderBy": "name DESC", "limit": 1}
    told = {"headers": ["name", "host", "bindingCount"], "results": [["b", "/", 0]], "total": 2}
    assert await managed("POST", "querybroker/queue", wanted) == (200, told)
    assert await managed("POST", f"queryvhost/{HOST}/queue", wanted) == (200, told)
    asked = "select=name&where=name%20%3D%20%27a%27&format=json"
    assert (await managed("GET", f"querybroker/queue?{asked}"))[1]["results"] == [["a"]]
    assert (await managed("GET", "querybroker/queue?where=name%20%3D"))[0] == 400
    assert (await managed("GET", "querybroker/queue?where=name%20%2B%201%20%3D%202"))[0] == 422
    assert (await managed("POST", "querybroker/queue", {"nonsense": 1}))[0] == 400
    assert (await managed("GET", "querybroker/nonsense"))[0] == 404
    assert (await managed("GET", f"queryvhost/{HOST}/port"))[0] == 404
    assert (await managed("GET", "queryvhost/nobody/nobody/queue"))[0] == 404


async def test_secrets_are_not_asked_for(managed: Managed) -> None:
    """No filter, order or expression tells a password, nor whether one is right."""
    masked = await managed("GET", "querybroker/user?select=name%2Cpassword")
    assert masked[1]["results"] == [["guest", None]]
    assert (await managed("GET", "user?password=guest"))[1] == []


async def test_rules_ask_about_what_is_done(managed: Managed) -> None:
    """A rule is asked about values as they are read, not as they are written, and about a deletion as one."""
    rules = (
        "CONFIG DEFAULTDEFER=TRUE",
        'ACL DENY guest CREATE QUEUE durable="false"',
        'ACL DENY guest DELETE QUEUE name="kept"',
    )
    assert (await managed("PUT", "accesscontrolprovider/acl", {"rules": "\n".join(rules)}))[0] == 200
    assert (await managed("PUT", f"queue/{HOST}/kept", {}))[0] == 201
    for _ in range(50):  # a moment later management has heard of it
        status, _told = await managed("PUT", f"queue/{HOST}/gone", {"durable": False})
        if status == 403:
            break
        await managed("DELETE", f"queue/{HOST}/gone")
    for durable in (False, "false", "False", "${no}"):
        await managed("POST", "broker/setContextVariable", {"name": "no", "value": "false"})
        assert (await managed("PUT", f"queue/{HOST}/gone", {"durable": durable}))[0] == 403, durable
    assert (await managed("PUT", f"queue/{HOST}/kept", {"desiredState": "DELETED"}))[0] == 403
    assert (await managed("DELETE", f"queue/{HOST}/kept"))[0] == 403
    assert await managed("GET", "accesscontrolprovider/acl/extractRules") == (200, "\n".join(rules))
    assert (await managed("PUT", "accesscontrolprovider/acl", {"rules": "ACL NONSENSE"}))[0] == 422
    assert (await managed("PUT", "accesscontrolprovider/acl", {"rules": ""}))[0] == 200


async def test_purging_many(managed: Managed) -> None:
    """Of a virtual host, those that are named, or whose names fit; one that is not there stops it before it begins."""
    client = await managed.house.connect()
    for name in ("a1", "a2", "b"):
        await client.declare(name, durable=True)
        client.publish(b"m", name)
    await client.get("b")  # what came before is in its queues
    host = f"virtualhost/{HOST}"
    assert (await managed("POST", f"{host}/clearQueues", {"queues": ["a1", "none"]}))[0] == 422
    assert await managed("POST", f"{host}/clearQueues", {"queues": ["a1"]}) == (200, 1)
    assert await managed("POST", f"{host}/clearMatchingQueues", {"queueNamePattern": "a."}) == (200, 1)
    assert (await managed("POST", f"{host}/clearMatchingQueues", {"queueNamePattern": "("}))[0] == 422
    for names in (5, [5], [["a1"]], [{}]):
        assert (await managed("POST", f"{host}/clearQueues", {"queues": names}))[0] == 422
    slow = {"queueNamePattern": "((((.*){50}){50}){50}){50}x"}
    assert (await managed("POST", f"{host}/clearMatchingQueues", slow))[0] == 422


async def test_who_may_not_open_a_virtual_host_purges_nothing_in_it(managed: Managed) -> None:
    """Nor is told which queues it has: what fits and what does not, existing and missing ones look the same."""
    await managed("PUT", "user/internal/mona", {"password": "x", "tags": ["management"]})
    await managed("PUT", f"queue/{HOST}/secret", {})
    for pattern in ("secret", "other", "("):
        told = await managed("POST", f"virtualhost/{HOST}/clearMatchingQueues", {"queueNamePattern": pattern}, "mona:x")
        assert told[0] == 403, pattern
    for names in (["secret"], ["other"], [], [[]]):
        assert (await managed("POST", f"virtualhost/{HOST}/clearQueues", {"queues": names}, "mona:x"))[0] == 403
    assert (await managed("POST", "virtualhost/none/none/clearMatchingQueues", {}, "mona:x"))[0] == 403


async def _until_told(managed: Managed, category: str, name: str) -> None:
    for _ in range(50):
        if (await managed("GET", f"{category}/{HOST}/{name}"))[0] == 200:
            return
    pytest.fail(f"no {category} {name}")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (("POST", f"virtualhost/{HOST}/clearMatchingQueues", {"queueNamePattern": "others"}), 403),
        (("PUT", f"queue/{HOST}/mine", {"alternateBinding": {"destination": "theirs"}}), 403),
    ],
)
async def test_what_comes_while_access_is_asked(
    managed: Managed, monkeypatch: pytest.MonkeyPatch, request_: tuple[str, str, object], status: int
) -> None:
    """Is checked too, or left alone: no user purges, or dead-letters to, what appears in that moment."""
    await managed("PUT", "user/internal/mona", {"password": "x", "tags": ["management"]})
    terms = {"configure": ".*", "write": "^(amq[.]default)?$", "read": "^mine"}
    assert (await managed.ask("/api/access/permissions/mona", "guest:guest", "PUT", terms))[0] == 200
    for number in range(50):  # a moment later management has heard of it
        if (await managed("PUT", f"queue/{HOST}/mine{number}", {}, "mona:x"))[0] == 201:
            break
    client = await managed.house.connect()
    user, asked = Guard.user, list[str]()

    async def meanwhile(guard: Guard, principal: Principal, host: str) -> Any:
        found = await user(guard, principal, host)
        asked.append(principal.name)
        if principal.name == "mona" and asked.count("mona") == 2:  # the first is at the door
            await client.declare("others", durable=True)
            await client.call(
                1, commands.Exchange.Declare(exchange="theirs", durable=True), commands.Exchange.DeclareOk
            )
            await _until_told(managed, "exchange", "theirs")
            await _until_told(managed, "queue", "others")
        return found

    monkeypatch.setattr(Guard, "user", meanwhile)
    assert (await managed(*request_, user="mona:x"))[0] == status


async def test_one_that_goes_while_many_are_purged(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops no purge of the others."""
    for name in ("a", "b"):
        await managed("PUT", f"queue/{HOST}/{name}", {})

    async def purge(_self: Purging, _queue_id: int, _partition: int, name: str) -> int:
        if name == "a":
            raise NotFound("no queue 'a'")
        return 3

    monkeypatch.setattr(Purging, "purge", purge)
    assert await managed("POST", f"virtualhost/{HOST}/clearMatchingQueues", {}) == (200, 3)


async def test_connections_and_sessions(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections with their channels, and closing one, of which its client is told."""
    monkeypatch.setattr(recent, "OLDEST", 0.0)
    client, other = await managed.house.connect(channels=2), await managed.house.connect()
    await client.declare("q")
    for _ in range(3):
        client.publish(b"m", "q")
    await client.prefetch(2)
    await client.consume("q", "mine")
    await client.bodies(2)
    first, second = (await managed("GET", f"connection/{HOST}?orderBy=name"))[1]
    assert (first["principal"], first["protocol"]) == ("guest", "AMQP 0-9-1")
    assert first["statistics"].items() >= {"sessionCount": 2, "localTransactionOpen": 0}.items()
    assert first["gateway"] == f"gateway-{first['name'].split('.')[0]}"
    path = f"{HOST}/{first['name']}"
    sessions = {each["channelId"]: each for each in (await managed("GET", f"session/{path}"))[1]}
    assert await managed("GET", f"session/{path}/1/getConsumers") == (200, [f"{first['name']}|mine"])
    assert await managed("GET", f"session/{path}/2/getConsumers") == (200, [])
    assert sorted(sessions) == [1, 2]
    assert sessions[1]["statistics"] == {"consumerCount": 1, "unacknowledgedMessages": 2}
    assert (sessions[1]["prefetch"], sessions[2]["prefetch"]) == (2, 0)
    deep = (await managed("GET", f"virtualhost/{HOST}?depth=2"))[1]
    assert {each["name"] for each in deep["connections"]} == {first["name"], second["name"]}
    assert (await managed("DELETE", f"connection/{path}"))[0] == 200
    close = await client.expect(commands.Connection.Close)
    assert close.reply_text.endswith("closed via management")
    client.send(0, commands.Connection.CloseOk())
    while (await managed("GET", f"connection/{path}"))[0] != 404:
        await asyncio.sleep(0.05)
    assert (await managed("PUT", f"connection/{HOST}/x", {}))[0] == 405
    assert (await other.declare("q", passive=True)).message_count == 3


async def test_store_processes(managed: Managed) -> None:
    """The broker shows which store process writes and which stand by; where there can be but one, nothing."""
    assert (await managed("GET", "broker"))[1]["storeProcesses"] == {}
    members = [Member(member=name, role="store") for name in ("store-1-x", "store-2-y")]
    for writer in members:
        lease = Lease(name="store", epoch=1, member=writer.member)
        managed.mgmt._stores.apply(LeaseTable(leases=[lease], members=members))
        told = (await managed("GET", "broker"))[1]["storeProcesses"]
        assert told == {each.member: "writes" if each is writer else "stands by" for each in members}
