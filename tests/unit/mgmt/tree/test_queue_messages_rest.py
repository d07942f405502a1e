"""Messages of queues at a whole broker: described, shown, deleted, moved and copied, by who may."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from services.common.message.facts import Facts
from services.mgmt.in_queues import deciding
from services.mgmt.in_queues.messages import left
from services.queue.links import selecting, transactions
from services.rpc.queue_pb2 import Copied
from tests.unit.mgmt.tree.conftest import HOST, Managed

Q = f"queue/{HOST}/q"


async def filled(managed: Managed, *bodies: bytes, durable: bool = True, **properties: Any) -> Any:
    """Queue q with these, an empty one with the same owner, r, and one with another, s; gives the client."""
    client = await managed.house.connect()
    for name in ("q", "r", "s"):
        await client.declare(name, durable=durable)
    for body in bodies:
        client.publish(body, "q", **{"delivery_mode": 2, **properties})
    while (await client.declare("q", passive=True)).message_count < len(bodies):
        await asyncio.sleep(0.01)
    return client


async def infos(managed: Managed, path: str = Q, query: str = "") -> list[dict[str, Any]]:
    status, told = await managed("GET", f"{path}/getMessageInfo{query}")
    assert status == 200, told
    return list(told)


async def bodies(client: Any, queue: str) -> list[bytes]:
    found = []
    while (got := await client.get(queue)) is not None:
        found.append(got.body)
    return found


async def test_described(managed: Managed) -> None:
    """Each with what its publisher said, its state and its size; a part of them, and of how many."""
    client = await filled(
        managed,
        b"zero",
        b"one!!",
        b"two",
        message_id="m",
        content_type="text/plain",
        headers={"a": 1},
        expiration="60000",
    )
    told = await infos(managed)
    assert [(each["state"], each["size"], each["deliveryCount"]) for each in told] == [
        ("Available", 4, 0), ("Available", 5, 0), ("Available", 3, 0),
    ]  # fmt: skip
    one = told[1]
    assert (one["messageId"], one["mimeType"], one["persistent"], "headers" in one) == ("m", "text/plain", True, False)
    assert (one["to"], one["initialRoutingAddress"]) == ("", "q")
    assert one["expirationTime"] - one["arrivalTime"] == 60_000
    assert [each["id"] for each in await infos(managed, query="?first=1&last=1&includeHeaders=true")] == [one["id"]]
    headers = await managed.headers("GET", f"{Q}/getMessageInfo?first=1&last=1")
    assert headers["Content-Range"] == "1-1/3"
    assert (await managed("GET", f"{Q}/getMessageInfoById?messageId={one['id']}"))[1]["headers"] == {"a": 1}
    assert (await managed("GET", f"{Q}/getMessageInfoById?messageId=7"))[0] == 404
    assert (await managed("GET", f"{Q}/getMessageInfoById?messageId=x"))[0] == 422
    await client.get("q", no_ack=False)
    assert [each["state"] for each in await infos(managed)] == ["Acquired", "Available", "Available"]


async def test_content(managed: Managed) -> None:
    """As it is, cut, decompressed first; as JSON where it can be: never as a page that a browser would show."""
    packed = gzip.compress(b'{"a": "long text"}')
    client = await filled(managed, packed, content_type="application/json", content_encoding="gzip")
    client.publish(b"text", "q", content_type="text/plain")
    while len(its := await infos(managed)) < 2:
        pass
    path, text = (f"{Q}/getMessageContent?messageId={each['id']}" for each in its)
    assert await managed("GET", f"{text}&limit=3") == (200, "tex")
    headers = await managed.headers("GET", text)
    assert (headers["X-Content-Type-Options"], headers["Content-Disposition"][:10]) == ("nosniff", "attachment")
    assert await managed("GET", f"{path}&returnJson=true&limit=4") == (200, {"a": "long..."})
    assert await managed("GET", f"{path}&decompressBeforeLimiting=true") == (200, {"a": "long text"})
    assert (await managed("GET", f"{Q}/getMessageContent?messageId=1"))[0] == 404


async def test_deleted(managed: Managed) -> None:
    """Those that are named, or selected, so many at most; what is wrong with the request is said."""
    client = await filled(managed, *[b"%d" % number for number in range(6)], headers={"a": 1})
    ids = [each["id"] for each in await infos(managed)]
    assert await managed("POST", f"{Q}/deleteMessages", {"messageIds": [ids[1], str(ids[3]), 5]}) == (
        200,
        [ids[1], ids[3]],
    )
    assert await managed("POST", f"{Q}/deleteMessages", {"selector": "a = 2"}) == (200, [])
    assert await managed("POST", f"{Q}/deleteMessages", {"selector": "a = 1", "limit": 2}) == (200, [ids[0], ids[2]])
    for nothing in ({"limit": 0}, {"messageIds": []}):
        assert await managed("POST", f"{Q}/deleteMessages", nothing) == (200, [])
    for wrong in ({"selector": "("}, {"messageIds": [True]}, {"messageIds": ["x"]}, {"what": 1}, {"limit": "x"}):
        assert (await managed("POST", f"{Q}/deleteMessages", wrong))[0] == 422, wrong
    assert (await managed("GET", f"{Q}/deleteMessages"))[0] == 405
    assert await bodies(client, "q") == [b"4", b"5"]


async def test_a_connection_has_its_queue_for_itself(managed: Managed) -> None:
    """Its messages are neither shown, nor moved, nor dropped, as over RabbitMQ's API; it is passed over."""
    client = await filled(managed, b"0")
    await client.declare("own", exclusive=True)
    client.publish(b"1", "own")
    own = f"queue/{HOST}/own"
    for method, path, body in (
        ("GET", f"{own}/getMessageInfo", None),
        ("GET", f"{own}/getMessageInfoById?messageId=1", None),
        ("GET", f"{own}/getMessageContent?messageId=1", None),
        ("POST", f"{own}/deleteMessages", {}),
        ("POST", f"{own}/moveMessages", {"destination": "r"}),
        ("POST", f"{own}/copyMessages", {"destination": "r"}),
        ("POST", f"{own}/clearQueue", {}),
        ("POST", f"virtualhost/{HOST}/clearQueues", {"queues": ["q", "own"]}),
    ):
        status, told = await managed(method, path, body)
        assert (status, "exclusive access to locked queue 'own'" in str(told)) == (409, True), path
    matching = {"queueNamePattern": ".*"}
    assert await managed("POST", f"virtualhost/{HOST}/clearMatchingQueues", matching) == (200, 1)
    assert (await client.declare("own", passive=True)).message_count == 1


async def test_times_to_live_of_what_is_moved(managed: Managed) -> None:
    """That of the other queue counts from the arrival there, that of the one before no more, and its own as before."""
    client = await filled(managed, b"own", expiration="60000")
    client.publish(b"none", "q")
    await client.declare("t", durable=True, arguments={"x-message-ttl": 30_000})
    await asyncio.sleep(0.3)
    [own, _] = its = await infos(managed)
    ids = [each["id"] for each in its]
    for source, target in (("q", "t"), ("t", "s")):
        assert await managed("POST", f"queue/{HOST}/{source}/copyMessages", {"destination": target}) == (200, ids)
        told = await infos(managed, f"queue/{HOST}/{target}")
        ids = [each["id"] for each in told]
        if target == "t":
            assert {each["expirationTime"] - each["arrivalTime"] for each in told} == {30_000}
            assert min(each["arrivalTime"] for each in told) > own["arrivalTime"] + 200
    assert told[0]["expirationTime"] == own["expirationTime"]
    assert not told[1].get("expirationTime")


def test_what_is_left() -> None:
    """Of its own time; nothing of one that is over; all of it where it is not known when it came."""
    facts = Facts("/", "", "q", "amqp-0-9-1")
    assert left(facts, 1000, 1500) == facts
    lives = facts._replace(ttl_ms=2000)
    assert [left(lives, came, now).ttl_ms for came, now in ((1000, 1500), (1000, 9000), (0, 9000))] == [1500, 0, 2000]


@pytest.mark.parametrize(("to", "durable"), [("r", True), ("s", True), ("s", False)])
async def test_moved_and_copied(managed: Managed, monkeypatch: pytest.MonkeyPatch, to: str, durable: bool) -> None:
    """In portions, in order: a message that is moved is in one queue, and one that is copied in both."""
    monkeypatch.setattr(selecting, "_AT_ONCE", 2)
    client = await filled(managed, *[b"%d" % number for number in range(7)], durable=durable)
    copied: list[Copied] = []
    monkeypatch.setattr(transactions, "tell_copied", lambda _host, its: copied.append(its))
    ids = [each["id"] for each in await infos(managed)]
    assert await managed("POST", f"{Q}/copyMessages", {"destination": to, "messageIds": ids[:3]}) == (200, ids[:3])
    assert [uid for its in copied for uid in its.uids] == ids[:3]
    assert await managed("POST", f"{Q}/moveMessages", {"destination": to, "limit": 5}) == (200, ids[:5])
    for wrong in ({"destination": "q"}, {"destination": "none"}, {}):
        assert (await managed("POST", f"{Q}/moveMessages", wrong))[0] == 422
    assert await bodies(client, "q") == [b"5", b"6"]
    assert await bodies(client, to) == [b"0", b"1", b"2", b"0", b"1", b"2", b"3", b"4"]


async def test_where_it_is_full(managed: Managed) -> None:
    """What the other queue does not take stays where it was, as if nothing had been."""
    client = await filled(managed, b"0", b"1", b"2")
    await client.declare("small", durable=True, arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    status, told = await managed("POST", f"{Q}/moveMessages", {"destination": "small"})
    assert (status, told["errorMessage"]) == (409, "queue 'small' is full")
    assert await managed("POST", f"{Q}/copyMessages", {"destination": "small"}) == (status, told)
    flow = {"x-max-length": 1, "x-overflow": "producer-flow-control"}
    await client.declare("held", durable=True, arguments=flow)
    for body in (b"a", b"b"):
        client.publish(body, "held", delivery_mode=2)
    while (await client.declare("held", passive=True)).message_count < 2:
        await asyncio.sleep(0.01)
    status, told = await managed("POST", f"{Q}/moveMessages", {"destination": "held"})
    assert (status, told["errorMessage"]) == (409, "queue 'held' is full")
    assert [(each["state"], each["deliveryCount"]) for each in await infos(managed)] == [("Available", 0)] * 3
    assert await bodies(client, "q") == [b"0", b"1", b"2"]


async def test_the_store_says_no(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a portion is moved that the store has not committed; those before are told of."""
    monkeypatch.setattr(selecting, "_AT_ONCE", 2)
    client = await filled(managed, b"0", b"1", b"2")
    decide, calls = deciding._decide, list[int]()

    async def once(store: Any, transaction: int, staged: int, parts: Any) -> None:
        calls.append(transaction)
        if len(calls) == 2:
            await store.resolve_transaction(transaction)  # as a queue process does that has heard nothing for long
        await decide(store, transaction, staged, parts)

    monkeypatch.setattr(deciding, "_decide", once)
    status, told = await managed("POST", f"{Q}/moveMessages", {"destination": "r"})
    assert (status, told["errorMessage"]) == (503, "a queue process was lost; try again; 2 messages had gone before")
    assert (await bodies(client, "q"), await bodies(client, "r")) == ([b"2"], [b"0", b"1"])


async def test_who_may(managed: Managed) -> None:
    """Whoever may consume there may look, and publish to the other one to move; to delete is to purge."""
    await filled(managed, b"0")
    await managed("PUT", "user/internal/mona", {"password": "x", "tags": ["monitoring"]})
    requests = [
        ("GET", "getMessageInfo", None), ("GET", "getMessageInfoById?messageId=1", None),
        ("GET", "getMessageContent?messageId=1", None), ("POST", "deleteMessages", {}),
        ("POST", "moveMessages", {"destination": "r"}), ("POST", "copyMessages", {"destination": "r"}),
    ]  # fmt: skip
    for method, name, body in requests:
        assert (await managed(method, f"{Q}/{name}", body, "mona:x"))[0] == 403, name
    terms = {"configure": "", "write": "", "read": "^q$"}
    assert (await managed.ask("/api/access/permissions/mona", "guest:guest", "PUT", terms))[0] == 200
    for _ in range(100):
        if (await managed("GET", f"{Q}/getMessageInfo", user="mona:x"))[0] == 200:
            break
        await asyncio.sleep(0.02)
    assert (await managed("GET", f"{Q}/getMessageInfo", user="mona:x"))[0] == 200
    for name in ("moveMessages", "copyMessages"):
        assert (await managed("POST", f"{Q}/{name}", {"destination": "r"}, "mona:x"))[0] == 403


async def test_who_may_and_sees_no_other(managed: Managed) -> None:
    """A user of management who may consume there looks at its messages, though not at the tree; nobody else does."""
    await filled(managed, b"0")
    await managed("PUT", "user/internal/mara", {"password": "x", "tags": ["management"]})
    asked = (("GET", "getMessageInfo"), ("POST", "getMessageInfo"), ("GET", "getStatistics"), ("GET", "nonsense"))
    for method, name in asked:
        for queue in (Q, f"{Q}-not-there"):
            assert (await managed(method, f"{queue}/{name}", {} if method == "POST" else None, "mara:x"))[0] == 403
    terms = {"configure": "", "write": "", "read": "^q$"}
    assert (await managed.ask("/api/access/permissions/mara", "guest:guest", "PUT", terms))[0] == 200
    await eventually(managed, "getMessageInfo", "mara:x")
    told = [
        (await managed(method, f"{Q}/{name}", {} if method == "POST" else None, "mara:x"))[0] for method, name in asked
    ]
    assert told == [200, 200, 403, 403]
    assert (await managed("GET", Q, user="mara:x"))[0] == 403


async def eventually(managed: Managed, operation: str, user: str) -> None:
    async with asyncio.timeout(10):
        while (await managed("GET", f"{Q}/{operation}", user=user))[0] != 200:
            await asyncio.sleep(0.02)
