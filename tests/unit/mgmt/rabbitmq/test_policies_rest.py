"""RabbitMQ's API of policies at a whole broker: what is set counts for queues that are there when it is answered."""

from __future__ import annotations

from typing import Any

from tests.unit.mgmt.rabbitmq.conftest import Asked


async def ready(asked: Asked, queue: str) -> int:
    """Of what waits, as a client is told."""
    client = await asked.house.connect()
    return int((await client.declare(queue, passive=True)).message_count)


def policy(pattern: str, says: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"pattern": pattern, "definition": says} | more


async def test_a_policy_counts_at_once(asked: Asked) -> None:
    """For what is published from then on; the queue's row tells of it; cleared, it does not count any more."""
    client = await asked.house.connect()
    await client.declare("jobs", durable=True)
    body = policy("^jobs", {"max-length": 2, "overflow": "reject-publish"}, **{"apply-to": "queues", "priority": 1})
    assert await asked("PUT", "policies/%2F/short", body) == (201, None)
    assert await asked("PUT", "policies/%2F/short", body) == (204, None)
    assert await asked.get("policies/%2F/short") == {**body, "vhost": "/", "name": "short"}
    assert await asked.get("policies") == await asked.get("policies/%2F") == [{**body, "vhost": "/", "name": "short"}]
    assert await asked.get("operator-policies") == []
    for _ in range(5):
        client.publish(b"m", "jobs")
    assert await ready(asked, "jobs") == 2
    row = await asked.get("queues/%2F/jobs?columns=policy,operator_policy,effective_policy_definition,arguments")
    assert row == {
        "policy": "short",
        "effective_policy_definition": body["definition"],
        "arguments": {},
    }
    assert await asked("DELETE", "policies/%2F/short") == (204, None)
    client.publish(b"m", "jobs")
    assert await ready(asked, "jobs") == 3
    assert (await asked("DELETE", "policies/%2F/short"))[0] == 404


async def test_an_operators_policy(asked: Asked) -> None:
    """Is beside users' ones: of their limits the lower counts, and the other says nothing of what it does not limit."""
    await asked("PUT", "queues/%2F/q", {"arguments": {"x-max-length": 9}})
    await asked("PUT", "policies/%2F/p", policy("", {"max-length": 5, "message-ttl": 60000}))
    assert await asked("PUT", "operator-policies/%2F/p", policy("", {"max-length": 1})) == (201, None)
    row = await asked.get("queues/%2F/q?columns=policy,operator_policy,effective_policy_definition")
    assert row == {
        "policy": "p",
        "operator_policy": "p",
        "effective_policy_definition": {"max-length": 1, "message-ttl": 60000},
    }
    client = await asked.house.connect()
    for _ in range(5):
        client.publish(b"m", "q")
    assert await ready(asked, "q") == 1


async def test_what_is_none(asked: Asked) -> None:
    """Is answered 400, with what is wrong."""
    for body, reason in (
        (policy("", {"max-length": "5"}), "max-length must be an integer"),
        (policy("", {"nonsense": 1}), "nonsense is not recognised in a policy"),
        (policy("(", {"max-length": 5}), "pattern is not taken"),
        (policy("", {"max-length": 5}, **{"apply-to": "all of it"}), "apply-to must be one of"),
        (policy("", {"max-length": 5}, priority="high"), "priority"),
        ({"pattern": ""}, "definition"),
    ):
        status, told = await asked("PUT", "policies/%2F/p", body)
        assert (status, reason in told["reason"]) == (400, True), told


async def test_who_may(asked: Asked) -> None:
    """Policymakers set policies of virtual hosts that they may open, and none of operators."""
    await asked("PUT", "vhosts/other", {})
    for name, tags in (("maker", "policymaker"), ("watcher", "monitoring")):
        await asked("PUT", f"users/{name}", {"password": "secret", "tags": tags})
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        await asked("PUT", f"permissions/%2F/{name}", everything)
    body = policy("", {"max-length": 5})
    assert (await asked("PUT", "policies/%2F/p", body, user="watcher:secret"))[0] == 401
    assert (await asked("PUT", "policies/%2F/p", body, user="maker:secret"))[0] == 201
    assert (await asked("PUT", "policies/other/p", body, user="maker:secret"))[0] == 401
    assert (await asked("PUT", "operator-policies/%2F/p", body, user="maker:secret"))[0] == 401
    assert (await asked("DELETE", "policies/%2F/p", user="watcher:secret"))[0] == 401
    assert (await asked("DELETE", "policies/%2F/p", user="maker:secret"))[0] == 204


async def test_definitions(asked: Asked) -> None:
    """Have policies, and operators' as parameters, as RabbitMQ's have; what they export, they import."""
    await asked("PUT", "policies/%2F/p", policy("^q", {"max-length": 5}))
    await asked("PUT", "operator-policies/%2F/limit", policy("", {"message-ttl": 7}, **{"apply-to": "queues"}))
    told = await asked.get("definitions")
    assert told["policies"] == [
        {"vhost": "/", "name": "p", "pattern": "^q", "definition": {"max-length": 5}, "apply-to": "all", "priority": 0}
    ]
    value = {"pattern": "", "definition": {"message-ttl": 7}, "apply-to": "queues", "priority": 0}
    assert told["parameters"] == [{"vhost": "/", "component": "operator_policy", "name": "limit", "value": value}]
    of_host = await asked.get("definitions/%2F")
    assert [each["name"] for each in of_host["policies"]] == ["p"]
    await asked("DELETE", "policies/%2F/p")
    await asked("DELETE", "operator-policies/%2F/limit")
    assert await asked("POST", "definitions", told) == (204, None)
    assert (await asked.get("definitions"))["policies"] == told["policies"]
    assert (await asked.get("definitions"))["parameters"] == told["parameters"]
    await asked("DELETE", "policies/%2F/p")
    assert await asked("POST", "definitions/%2F", of_host) == (204, None)
    assert [each["name"] for each in await asked.get("policies")] == ["p"]
