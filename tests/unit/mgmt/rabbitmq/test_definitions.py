"""Definitions that RabbitMQ exported are taken, with users who sign in by its hashes; what cannot be is told."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from services.common.clients.mgmt import MgmtClient
from services.common.errors import BrokerError, NotFound, SyntaxFault, Unavailable
from services.common.users import User
from services.mgmt.rabbitmq import definitions, sections, taking
from services.mgmt.users import Users
from tests.support.exported import EXPORTED, hashed, queue, user
from tests.unit.mgmt.rabbitmq.conftest import Asked

HASHING = "rabbit_password_hashing_"


async def test_all_of_it(asked: Asked) -> None:
    """204; once more 204; its users sign in, with what they may do; and it is exported again as it came."""
    assert [(await asked("POST", "definitions", EXPORTED))[0] for _ in range(2)] == [204, 204]
    assert [each["name"] for each in await asked.get("queues/shop", "anna:secret")] == ["orders", "safe"]
    assert (await asked.get("whoami", "bert:secret"))["tags"] == ["management", "policymaker"]
    told = await asked.get("definitions")
    for section in ("exchanges", "bindings", "queues", "topic_permissions", "policies"):
        assert told[section] == EXPORTED[section]
    assert EXPORTED["permissions"][0] in told["permissions"]
    assert [user("anna"), user("bert", "sha512", tags=["management", "policymaker"]), user("guest")] == told["users"]


async def test_a_round(asked: Asked) -> None:
    """What Hopline exports it takes itself, with passwords that were made here."""
    await asked("POST", "definitions", EXPORTED)
    await asked("PUT", "users/carl", {"password": "tiger", "tags": "management"})
    told = await asked.get("definitions")
    [carl] = [each for each in told["users"] if each["name"] == "carl"]
    assert (carl["hashing_algorithm"], base64.b64decode(carl["password_hash"])[:7]) == ("argon2", b"$argon2")
    await asked("DELETE", "vhosts/shop")
    for name in ("anna", "carl"):
        await asked("DELETE", f"users/{name}")
    assert (await asked("POST", "definitions", told)) == (204, None)
    assert await asked.get("definitions") == told
    assert (await asked.get("whoami", "carl:tiger"))["name"] == "carl"


async def test_once_more(asked: Asked) -> None:
    """A user that has signed in meanwhile keeps the better hash, and connections; one with a new password gets that."""
    await asked("POST", "definitions", {"users": [user("guest")]})
    client = await asked.house.connect()
    newer = await _better_hash(asked)
    for exported in (user("guest"), newer):
        assert (await asked("POST", "definitions", {"users": [exported]}))[0] == 204
        assert (await asked.get("definitions"))["users"][0] == newer
    await client.declare("q")
    other = user("guest", password_hash=hashed("other"))
    assert (await asked("POST", "definitions", {"users": [other]}))[0] == 204
    assert (await asked("GET", "whoami"))[0] == 401
    assert (await asked("POST", "definitions", {"users": [user("guest")]}, user="guest:other"))[0] == 204
    assert (await asked("GET", "whoami"))[0] == 200


async def _better_hash(asked: Asked) -> Any:
    for _ in range(100):
        [told] = (await asked.get("definitions"))["users"]
        if told["hashing_algorithm"] == "argon2":
            break
        await asyncio.sleep(0.1)
    return told


async def test_guest_stays_here(asked: Asked) -> None:
    """RabbitMQ's guest is let in from its own machine only, which no definitions say."""
    await asked("DELETE", "users/guest", user="guest:guest")
    client = MgmtClient(asked.house.settings.address_of("mgmt"))
    await client.import_definitions(json.dumps(EXPORTED).encode())
    assert [each.name for each in await client.list_users() if each.loopback_only] == ["guest"]
    await client.close()


NOT_ALL: dict[str, Any] = {
    "vhosts": [
        {
            "name": "shop",
            "limits": [{"name": "max-queues", "value": 5}],
            "metadata": {"description": "", "tags": []},
        },
        {"name": "told", "metadata": {"description": "of the shop", "default_queue_type": "stream"}},
    ],
    "users": [user("old", hashing_algorithm=f"{HASHING}crc32"), user("certified", password_hash="")],
    "permissions": [{"user": "anna", "vhost": "gone", "configure": "", "write": "", "read": ""}],
    "parameters": [{"component": "shovel", "vhost": "shop", "name": "move", "value": {}}],
    "policies": [{"vhost": "shop", "name": "ha", "pattern": ".*", "definition": {}}],
    "queues": [queue("log", arguments={"x-queue-type": "stream"}), queue("plain"), queue("x", "gone"), 7],
    "exchanges": [{"name": "hash", "vhost": "shop", "type": "x-consistent-hash", "durable": True}],
    "bindings": [{"source": "hash", "vhost": "shop", "destination": "plain", "routing_key": "1"}],
    "global_parameters": [{"name": ["odd"], "value": 1}, {"name": "internal_cluster_id", "value": "c"}],
    "quotas": [1],
}


async def test_what_cannot_be_taken(asked: Asked) -> None:
    """Is told by name, with the reason, and holds up nothing else."""
    status, told = await asked("POST", "definitions", NOT_ALL)
    assert status == 200
    assert told["taken"] == {
        "vhosts": 2,
        "users": 0,
        "permissions": 0,
        "exchanges": 0,
        "queues": 1,
        "bindings": 0,
        "parameters": 0,
        "global_parameters": 1,
        "policies": 0,
    }
    reasons = {(each["kind"], each["name"]): each["reason"] for each in told["left_out"]}
    assert ("vhosts", "shop") not in reasons
    assert await asked.get("vhost-limits") == [{"vhost": "shop", "value": {"max-queues": 5}}]
    assert reasons["vhosts", "told"] == "queues are classic where nothing is said, not stream"
    assert (await asked.get("vhosts/told"))["metadata"] == {"description": "of the shop", "tags": []}
    assert "rabbit_password_hashing_crc32" in reasons["users", "old"]
    assert "needs a password" in reasons["users", "certified"]
    assert reasons["permissions", "anna"] == "vhost 'gone' not found"
    assert reasons["parameters", "move"] == "there are no shovels here"
    assert "definition must say something" in reasons["policies", "ha"]
    assert "x-queue-type" in reasons["queues", "log"]
    assert reasons["queues", "x"] == "no vhost 'gone'"
    assert "x-consistent-hash" in reasons["exchanges", "hash"]
    assert "no exchange 'hash'" in reasons["bindings", "hash → plain (1)"]
    assert reasons["global_parameters", "['odd']"] == "there are no global parameters here"
    assert "no such section" in reasons["quotas", "all"]
    assert [each["name"] for each in await asked.get("queues/shop")] == ["plain"]


async def test_what_is_said_of_virtual_hosts(asked: Asked) -> None:
    """Is shown as RabbitMQ shows it, in the tree too, given on, and gone with the virtual host."""
    metadata = {"description": "of the shop", "tags": ["a", "b"], "default_queue_type": "quorum"}
    # As rabbitmqctl exports tags that it was given, and as newer versions say it twice.
    first = {"name": "shop", "metadata": {**metadata, "tags": "a, b"}}
    second = {"name": "other", "description": "two", "tags": ["c"], "metadata": {"description": "two"}}
    nothing = {"name": "/", "metadata": {"description": "", "tags": [], "default_queue_type": "undefined"}}
    none = [{"name": "/", "metadata": said, "tags": None} for said in (None, [], {})]
    assert await asked("POST", "definitions", {"vhosts": [first, second, nothing, *none]}) == (204, None)
    told = await asked.get("vhosts/shop")
    assert told["metadata"] == metadata == {key: told[key] for key in metadata}
    exported = {each["name"]: each.get("metadata") for each in (await asked.get("definitions"))["vhosts"]}
    assert exported == {"/": None, "shop": metadata, "other": {"description": "two", "tags": ["c"]}}
    [there] = await asked.get("latest/virtualhost/other/other?actuals=true&singletonModelObjectResponseAsList=true")
    assert there["description"] == "two"
    await asked("DELETE", "vhosts/other")
    await asked("PUT", "vhosts/other")
    assert (await asked.get("vhosts/other"))["metadata"] == {"description": "", "tags": []}


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ({"metadata": {"description": 5, "tags": ["a"]}}, "metadata.description"),
        ({"tags": [str(number) for number in range(65)], "metadata": {"tags": ["a"]}}, "tags"),
        ({"tags": ["a"], "metadata": "x"}, "metadata"),
        ({"tags": ["a"], "metadata": {"default_queue_type": "x" * 256}}, "metadata.default_queue_type"),
        ({"tags": ["a"], "description": [1]}, "description"),
    ],
)
async def test_what_is_said_wrongly_of_a_virtual_host(asked: Asked, said: dict[str, Any], lost: str) -> None:
    """Is told; the virtual host is there with all else, and what is in it."""
    definitions = {"vhosts": [{"name": "shop", "limits": {"max-queues": 5}, **said}], "queues": [queue("plain")]}
    status, told = await asked("POST", "definitions", definitions)
    assert (status, told["taken"]) == (200, {"vhosts": 1, "queues": 1})
    assert [each["reason"].partition(": ")[0] for each in told["left_out"]] == [lost]
    assert await asked.get("vhost-limits") == [{"vhost": "shop", "value": {"max-queues": 5}}]
    assert (await asked.get("vhosts/shop"))["metadata"] == {"description": "", "tags": ["a"]}


async def test_a_virtual_host_that_cannot_be_described(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has its limits all the same, and it is told that nothing is said of it."""

    async def refused(*_: object) -> None:
        raise BrokerError("no")

    monkeypatch.setattr(sections, "describe", refused)
    host = {"name": "shop", "limits": {"max-queues": 5}, "metadata": {"description": "x"}}
    status, told = await asked("POST", "definitions", {"vhosts": [host]})
    assert (status, told["taken"]) == (200, {"vhosts": 1})
    assert [each["reason"] for each in told["left_out"]] == ["nothing is said of it: no"]
    assert await asked.get("vhost-limits") == [{"vhost": "shop", "value": {"max-queues": 5}}]


async def test_what_a_request_says_of_a_virtual_host(asked: Asked) -> None:
    """What it does not say stays; a type of queues that there is not is refused, and changes nothing."""
    assert (await asked("PUT", "vhosts/shop", {"description": "one", "tags": "a,b", "tracing": False}))[0] == 201
    assert (await asked("PUT", "vhosts/shop", {"description": "two", "default_queue_type": ""}))[0] == 204
    assert (await asked("PUT", "vhosts/shop", {}))[0] == 204
    for wrong in ({"default_queue_type": "stream", "tags": ""}, {"description": 1}, {"tags": {}}):
        assert (await asked("PUT", "vhosts/shop", wrong))[0] == 400
    assert (await asked.get("vhosts/shop"))["metadata"] == {"description": "two", "tags": ["a", "b"]}


async def test_an_empty_password(asked: Asked) -> None:
    """Accepts no sign-in: RabbitMQ keeps its hash for users who are not to sign in by password, and exports it."""
    nobody = user("empty", password_hash=hashed(""))
    _, told = await asked("POST", "definitions", {"users": [nobody]})
    assert [(each["name"], "empty" in each["reason"]) for each in told["left_out"]] == [("empty", True)]
    assert (await asked("GET", "whoami", user="empty:"))[0] == 401
    assert (await asked("PUT", "users/empty", {"password_hash": hashed(""), "tags": "administrator"}))[0] == 400


@pytest.mark.parametrize(("version", "told"), [("3.5.8", {}), ("3.12.1", {"hashing_algorithm": f"{HASHING}md5"})])
async def test_users_from_before_3_6(asked: Asked, version: str, told: dict[str, Any]) -> None:
    """Sign in with their password, whose hash is MD5: definitions say so, or come from where there was nothing else."""
    old = {key: value for key, value in user("old", "md5").items() if key != "hashing_algorithm"}
    exported = {"rabbit_version": version, "users": [{**old, **told}]}
    assert await asked("POST", "definitions", exported) == (204, None)
    assert (await asked("GET", "whoami", user="old:wrong"))[0] == 401
    assert (await asked("GET", "whoami", user="old:secret"))[0] == 200


async def test_queues_that_rabbitmq_named(asked: Asked) -> None:
    """Come with their names and bindings; nobody else may give a queue such a name."""
    name = "amq.gen-JzTY20BRgKO-HjmUJj0wLg"
    binding = {"source": "amq.fanout", "vhost": "/", "destination": name, "destination_type": "queue"}
    more = {"routing_key": "", "arguments": {}}
    exported = {"queues": [queue(name, "/"), queue("amq.other", "/")], "bindings": [{**binding, **more}]}
    _, told = await asked("POST", "definitions", exported)
    assert [each["name"] for each in told["left_out"]] == ["amq.other"]
    assert [each["name"] for each in await asked.get("queues")] == [name]
    assert (await asked("PUT", "queues/%2F/amq.gen-x", {"durable": True}))[0] == 401  # as RabbitMQ answers it


async def test_a_service_that_is_away(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends it, with 503: what is on its way ends too, and nothing more is begun."""
    begun = []

    async def declare(_broker: object, item: dict[str, Any]) -> str:
        begun.append(item["name"])
        if item["name"] == "0":
            raise Unavailable("no router answers at the moment; try again")
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(taking, "SECTIONS", {"queues": declare})
    status, told = await asked("POST", "definitions", {"queues": [queue(str(number)) for number in range(100)]})
    assert (status, told["reason"]) == (503, "no router answers at the moment; try again")
    assert len(begun) == 32
    assert not any("_section" in str(task.get_coro()) for task in asyncio.all_tasks())


async def test_what_rabbitmqctl_exports(asked: Asked) -> None:
    """It makes pairs of maps within parameters and virtual hosts, which RabbitMQ's HTTP API does not."""
    value = {"pattern": ".*", "definition": [["expires", 9], ["max-length", 5]], "apply-to": "queues", "priority": 0}
    policy = {"vhost": "/", "component": "operator_policy", "name": "op", "value": value}
    host = {"name": "shop", "limits": [["max-connections", 10]], "metadata": {"description": "", "tags": []}}
    none = {"name": "free", "limits": []}
    assert (await asked("POST", "definitions", {"parameters": [policy], "vhosts": [host, none]}))[0] == 204
    assert (await asked.get("operator-policies/%2F/op"))["definition"] == {"expires": 9, "max-length": 5}
    assert await asked.get("vhost-limits") == [{"vhost": "shop", "value": {"max-connections": 10}}]


async def test_sections_that_are_none(asked: Asked) -> None:
    """Are told before anything is taken."""
    status, told = await asked("POST", "definitions", {"vhosts": [{"name": "shop"}], "queues": {}})
    assert (status, told["reason"]) == (400, "queues: a list is wanted")
    assert [each["name"] for each in await asked.get("vhosts")] == ["/"]


async def test_many_users(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them is looked for among all, which would take minutes for thousands."""

    async def never(_users: object) -> list[User]:
        raise AssertionError("all users were asked for")

    with monkeypatch.context() as patched:
        patched.setattr(Users, "all", never)
        many = [user(f"user{number}") for number in range(40)]
        assert await asked("POST", "definitions", {"users": many}) == (204, None)
    assert len(await asked.get("users")) == 41


async def test_one_virtual_host(asked: Asked) -> None:
    """Its definitions do not say its name, and come into another one as well."""
    await asked("POST", "definitions", EXPORTED)
    await asked("PUT", "vhosts/copy")
    told = await asked.get("definitions/shop")
    assert "users" not in told
    assert "vhost" not in told["queues"][0]
    assert await asked("POST", "definitions/copy", told) == (204, None)
    assert {**await asked.get("definitions/copy")} == told
    assert (await asked("POST", "definitions/copy", {"users": [user("anna")]}))[1]["left_out"][0]["kind"] == "users"
    assert (await asked("POST", "definitions/none", told))[0] == 404


async def test_by_grpc(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line has the same, hears how far it is, and is told what no definitions are."""
    monkeypatch.setattr(definitions, "_EVERY", 0.001)
    client = MgmtClient(asked.house.settings.address_of("mgmt"))
    heard: list[tuple[int, int]] = []
    taken = await client.import_definitions(json.dumps(EXPORTED).encode(), None, lambda *far: heard.append(far))
    assert (taken.taken["queues"], taken.left_out) == (2, [])
    total = sum(len(items) for items in EXPORTED.values() if isinstance(items, list))
    assert heard == sorted(heard)
    assert len(heard) > 2
    assert (heard[0][0], heard[-1]) == (0, (total, total))
    assert json.loads(await client.export_definitions()) == await asked.get("definitions")
    assert json.loads(await client.export_definitions("shop")) == await asked.get("definitions/shop")
    with pytest.raises(SyntaxFault, match="JSON"):
        await client.import_definitions(b"no")
    with pytest.raises(NotFound, match="'none'"):
        await client.export_definitions("none")
    await client.close()
