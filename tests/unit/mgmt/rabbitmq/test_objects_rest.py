"""RabbitMQ's API at a whole broker: what is in virtual hosts, in RabbitMQ's fields and statuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.mgmt.rabbitmq.conftest import Asked


async def test_a_queue(asked: Asked) -> None:
    """Is declared (201), again (204), otherwise (400, and why), told with its fields, and deleted, once."""
    body = {"durable": "true", "auto_delete": "false", "arguments": {"x-max-length": 5}, "node": None}
    assert await asked("PUT", "queues/%2F/a%2Fb", body) == (201, None)
    assert await asked("PUT", "queues/%2F/a%2Fb", body) == (204, None)
    status, told = await asked("PUT", "queues/%2F/a%2Fb", {**body, "durable": False})
    assert (status, told["error"]) == (400, "bad_request")
    assert told["reason"].startswith("inequivalent arg 'durable' for queue 'a/b' in vhost '/'")
    queue = await asked.get("queues/%2F/a%2Fb")
    wanted = {
        "name": "a/b",
        "vhost": "/",
        "durable": True,
        "auto_delete": False,
        "exclusive": False,
        "arguments": {"x-max-length": 5},
        "type": "classic",
        "state": "running",
        "messages": 0,
        "consumers": 0,
        "consumer_details": [],
    }
    assert {name: queue[name] for name in wanted} == wanted
    assert queue["node"].startswith("queue-")
    assert await asked("DELETE", "queues/%2F/a%2Fb?if-unused=true&if-empty=true") == (204, None)
    gone = {"error": "not_found", "reason": "no queue 'a/b' in vhost '/'"}
    assert await asked("DELETE", "queues/%2F/a%2Fb") == await asked("GET", "queues/%2F/a%2Fb") == (404, gone)


async def test_counts_and_consumers(asked: Asked) -> None:
    """Are what clients have done; a queue with messages is deleted only where it may be, and purged."""
    client = await asked.house.connect()
    await client.declare("q", durable=True)
    for _ in range(5):
        client.publish(b"m", "q")
    await client.prefetch(2)
    await client.consume("q", "mine")
    await client.bodies(2)
    queue = await asked.get("queues/%2F/q?columns=messages,messages_ready,messages_unacknowledged,consumers")
    assert queue == {"messages": 5, "messages_ready": 3, "messages_unacknowledged": 2, "consumers": 1}
    [consumer] = await asked.get("consumers/%2F")
    assert consumer["queue"] == {"name": "q", "vhost": "/"}
    assert (consumer["consumer_tag"], consumer["ack_required"], consumer["active"]) == ("mine", True, True)
    assert (await asked.get("queues/%2F/q"))["consumer_details"] == [consumer]
    assert (await asked("DELETE", "queues/%2F/q?if-empty=true"))[1]["reason"] == "queue 'q' in vhost '/' not empty"
    assert (await asked("DELETE", "queues/%2F/q?if-unused=true"))[1]["reason"] == "queue 'q' in vhost '/' in use"
    assert (await asked.get("vhosts/%2F?columns=name,messages")) == {"name": "/", "messages": 5}
    assert await asked("DELETE", "queues/%2F/q/contents") == (204, None)
    assert (await asked.get("vhosts?columns=name,messages")) == [{"name": "/", "messages": 2}]


async def test_what_is_a_connections_own(asked: Asked) -> None:
    """Is shown with its owner, and no other may delete or purge it."""
    client = await asked.house.connect()
    name = (await client.declare("", exclusive=True)).queue
    queue = await asked.get(f"queues/%2F/{name}")
    assert (queue["exclusive"], bool(queue["owner_pid_details"]["name"])) == (True, True)
    for path in ("", "/contents"):
        status, told = await asked("DELETE", f"queues/%2F/{name}{path}")
        assert (status, "exclusive access" in told["reason"]) == (400, True)


async def test_an_exchange_and_its_bindings(asked: Asked) -> None:
    """Bindings have keys by which they are told apart; the default exchange has one for each queue."""
    await asked("PUT", "queues/%2F/q", {})
    assert await asked("PUT", "exchanges/%2F/e", {"type": "topic", "durable": "false"}) == (201, None)
    status, _, headers = await asked.ask("/api/bindings/%2F/e/e/q/q", "guest:guest", "POST", {"routing_key": "a.#"})
    assert (status, headers["Location"]) == (201, "q/a.%2523")
    await asked("POST", "bindings/%2F/e/e/q/q", {"routing_key": "a.#", "arguments": {"n": 1}})
    await asked("POST", "bindings/%2F/e/amq.fanout/e/e", {})
    own, with_arguments = await asked.get("bindings/%2F/e/e/q/q")
    assert own == {
        "source": "e",
        "vhost": "/",
        "destination": "q",
        "destination_type": "queue",
        "routing_key": "a.#",
        "arguments": {},
        "properties_key": "a.%23",
    }
    assert with_arguments["arguments"] == {"n": 1}
    assert (await asked.get("bindings/%2F/e/e/q/q/a.%2523")) == own
    assert [each["properties_key"] for each in await asked.get("exchanges/%2F/e/bindings/destination")] == ["~"]
    assert len(await asked.get("queues/%2F/q/bindings")) == 3
    assert await asked("DELETE", f"bindings/%2F/e/e/q/q/{with_arguments['properties_key'].replace('%', '%25')}") == (
        204,
        None,
    )
    assert await asked.get("exchanges/%2F/e/bindings/source") == [own]
    assert (await asked("DELETE", "bindings/%2F/e/e/q/q/other"))[0] == 404
    assert (await asked.get("exchanges/%2F/amq.default"))["name"] == ""
    assert (await asked.get("exchanges/%2F/amq.default/bindings/source"))[0]["routing_key"] == "q"
    assert (await asked("DELETE", "exchanges/%2F/e?if-unused=true"))[0] == 400
    assert (await asked("DELETE", "exchanges/%2F/e"))[0] == 204
    assert (await asked("DELETE", "exchanges/%2F/amq.direct"))[0] == 401


async def test_keys_of_bindings_in_paths(asked: Asked) -> None:
    """May be as they are told, and encoded once more: RabbitMQ takes both, and its tools do the one or the other."""
    await asked("PUT", "queues/%2F/q", {})
    place = "bindings/%2F/e/amq.topic/q/q"
    for key, in_path in (("a.#", "a.%23"), ("a.#", "a.%2523"), ("x~y z", "x%257Ey%2Bz"), ("x~y z", "x%7Ey+z")):
        await asked("POST", place, {"routing_key": key})
        assert (await asked.get(f"{place}/{in_path}"))["routing_key"] == key
        assert await asked("DELETE", f"{place}/{in_path}") == (204, None)
    assert await asked.get(place) == []


async def test_paths(asked: Asked) -> None:
    """A slash at the end has no meaning; names are UTF-8, so that no two of them are read as one."""
    await asked("PUT", "queues/%2F/q/", {})
    assert [each["name"] for each in await asked.get("queues/%2F/")] == ["q"]
    assert (await asked.get("queues/"))[0] == (await asked.get("queues"))[0]
    for method in ("PUT", "GET", "DELETE"):
        status, told = await asked(method, "queues/%2F/%FF", {} if method == "PUT" else None)
        assert (status, told["reason"]) == (400, "names in paths are UTF-8")


async def test_bodies(asked: Asked) -> None:
    """No longer than what they describe may be, and strict JSON."""
    status, told = await asked("PUT", "queues/%2F/q", {"arguments": {"x": "y" * (1 << 20)}})
    assert (status, told["error"]) == (413, "payload_too_large")
    message = {"routing_key": "q", "payload": "m" * (2 << 20)}
    assert await asked("POST", "exchanges/%2F/amq.default/publish", message) == (200, {"routed": False})
    for wrong in ({"x": float("nan")}, {"x": "\ud800"}):
        status, told = await asked("PUT", "queues/%2F/q", {"arguments": wrong})
        assert (status, "the body is no JSON" in told["reason"]) == (400, True)


async def test_lists(asked: Asked) -> None:
    """Pages, order, filters by name and columns; a page that there is not is none."""
    for number in range(5):
        await asked("PUT", f"queues/%2F/q{number}", {})
    client = await asked.house.connect()
    client.publish(b"m", "q3")
    await client.declare("q3", passive=True)
    page = await asked.get("queues?page=1&page_size=2&name=q&sort=messages&sort_reverse=true&columns=name,messages")
    assert page["items"][0] == {"name": "q3", "messages": 1}
    counts = {name: value for name, value in page.items() if name != "items"}
    assert counts == {
        "total_count": 5,
        "item_count": 2,
        "filtered_count": 5,
        "page": 1,
        "page_size": 2,
        "page_count": 3,
    }
    assert [each["name"] for each in (await asked.get("queues/%2F?page=1&name=^q[12]$&use_regex=true"))["items"]] == [
        "q1",
        "q2",
    ]
    assert [each["name"] for each in await asked.get("queues?sort=name&sort_reverse=true&columns=name")][:2] == [
        "q4",
        "q3",
    ]
    assert (await asked("GET", "queues?page=9"))[1]["error"] == "bad_request"
    assert (await asked("GET", "queues?page=1&name=(&use_regex=true"))[0] == 400
    assert (await asked("GET", "queues?page_size=none"))[0] == 400


@pytest.mark.parametrize("path", ["bindings", "permissions", "topic-permissions", "consumers"])
@pytest.mark.parametrize("how", ["name=x", "name=x&use_regex=true"])
async def test_lists_without_names(asked: Asked, path: str, how: str) -> None:
    """What has no name is not found by one."""
    page = await asked.get(f"{path}?page=1&{how}")
    assert page["items"] == []


async def test_a_pattern_that_takes_for_ever_to_make(asked: Asked) -> None:
    """It is refused before it is made."""
    status, body = await asked("GET", "queues?page=1&use_regex=true&name=((((.*)%7B50%7D)%7B50%7D)%7B50%7D)%7B50%7Dx")
    assert status == 400
    assert "as often" in body["reason"]


async def test_virtual_hosts(asked: Asked) -> None:
    """Are created once; each has its own names; they are deleted with their objects. A creator may do all in it."""
    assert [(await asked("PUT", "vhosts/team%2Fa"))[0] for _ in range(2)] == [201, 204]
    assert (await asked("PUT", "queues/team%2Fa/q", {}))[0] == 201
    assert [each["vhost"] for each in await asked.get("queues/team%2Fa")] == ["team/a"]
    assert (await asked("DELETE", "vhosts/team%2Fa"))[0] == 204
    await asked("PUT", "users/anna", {"password": "secret", "tags": "administrator"})
    assert (await asked("PUT", "vhosts/hers", user="anna:secret"))[0] == 201
    assert (await asked("PUT", "queues/hers/q", {}, user="anna:secret"))[0] == 201
    assert (await asked("PUT", "queues/%2F/q", {}, user="anna:secret"))[0] == 401
    assert await asked("GET", "queues/team%2Fa") == (404, {"error": "not_found", "reason": "no vhost 'team/a'"})


async def test_details_for_owners_and_others(asked: Asked) -> None:
    """The tag management shows what its user may open, and the user's permissions decide what is changed there."""
    await asked("PUT", "vhosts/mine")
    for host in ("%2F", "mine"):
        await asked("PUT", f"queues/{host}/q", {})
    await asked("PUT", "users/anna", {"password": "secret", "tags": "management"})
    await asked("PUT", "permissions/mine/anna", {"configure": "^a", "write": "", "read": ".*"})
    anna = "anna:secret"
    assert await asked.get("whoami", anna) == {"name": "anna", "tags": ["management"]}
    assert [each["name"] for each in await asked.get("vhosts", anna)] == ["mine"]
    assert [each["vhost"] for each in await asked.get("queues", anna)] == ["mine"]
    assert (await asked("GET", "queues/%2F", user=anna))[0] == 401
    status, told = await asked("PUT", "queues/mine/b", {}, user=anna)
    assert (status, told["error"]) == (401, "not_authorised")
    assert told["reason"] == "configure access to queue 'b' in vhost 'mine' refused for user 'anna'"
    assert (await asked("PUT", "queues/mine/a", {}, user=anna))[0] == 201
    assert (await asked("DELETE", "queues/mine/q", user=anna))[0] == 401
    assert (await asked("POST", "bindings/mine/e/amq.topic/q/q", {}, user=anna))[0] == 401
    assert (await asked("GET", "users", user=anna))[0] == 401


async def test_what_is_not_here(asked: Asked) -> None:
    """Parameters are lists of nothing, and cannot be made, which is said."""
    for path in ("parameters", "parameters/federation-upstream/%2F", "global-parameters"):
        assert await asked.get(path) == []
    status, told = await asked("PUT", "global-parameters/mine", {"value": 1})
    assert (status, told) == (400, {"error": "bad_request", "reason": "there are no global parameters here"})


async def test_bodies_that_are_none(asked: Asked) -> None:
    """Are answered 400 with what is wrong, and change nothing."""
    wrong: list[tuple[str, Any, str]] = [
        ("exchanges/%2F/e", {"type": 1}, "type: Input should be a valid string"),
        ("exchanges/%2F/e", {"type": "nonsense"}, "nonsense"),
        ("queues/%2F/q", {"durable": "perhaps"}, "durable"),
        ("queues/%2F/q", {"arguments": {"x-queue-type": "stream"}}, "x-queue-type"),
        ("queues/%2F/q", [1], "JSON object"),
        ("users/anna", {"password": "secret"}, "tags"),
        ("users/anna", {"tags": ""}, "needs a password"),
        ("permissions/%2F/guest", {"configure": "("}, "configure"),
        ("permissions/none/guest", {"configure": "", "write": "", "read": ""}, "vhost 'none' not found"),
    ]
    for path, body, reason in wrong:
        status, told = await asked("PUT", path, body)
        assert (status, told["error"]) == (400, "bad_request"), path
        assert reason in told["reason"], told
    assert await asked.get("queues") == []
