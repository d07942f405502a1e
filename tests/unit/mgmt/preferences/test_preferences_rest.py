"""Preferences over Broker-J's REST: kept for their owner, and shown to the groups that it names."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from services.common.clients.mgmt import MgmtClient
from services.mgmt.preferences import changing
from services.mgmt.preferences.preference import Preference
from services.rpc import mgmt_pb2 as pb
from tests.support.fake_store import FakeStore
from tests.support.rest import Get

OWN, SEEN = "broker/userpreferences", "broker/visiblepreferences"
NARROW = {"name": "narrow", "value": {"where": "queueDepthMessages > 0"}}
ID = "5a1a1b6e-40f1-4a3c-9d0a-0f6d6a3c2b11"

DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]


async def _at(get: Get, method: str, path: str, body: object = None, user: str = "guest") -> tuple[int, Any]:
    status, told, _ = await get(f"/api/latest/{path}", f"{user}:{user}", method, body)
    return status, told


@pytest.fixture
async def anna(client: MgmtClient, get: Get) -> str:
    """A user who may look, and is in a group with guest."""
    await client.put_user("anna", "anna", ["monitoring"])
    await client.change_access(put_group=pb.Group(name="staff", members=["anna", "guest"]))
    for _ in range(100):  # a moment later access has heard of it
        asked = {"X-a": [{"name": "probe", "visibilityList": ["staff"]}]}
        if (await _at(get, "POST", OWN, asked))[0] == 200:
            break
        await asyncio.sleep(0.05)
    assert (await _at(get, "DELETE", OWN))[0] == 200
    return "anna"


async def test_ones_own(get: Get, store: FakeStore) -> None:
    """Are put, told by path, by type and by id, changed, and deleted; they are records of the store."""
    assert await _at(get, "PUT", f"{OWN}/query/narrow", {"value": {"category": "queue"}}) == (200, None)
    told = (await _at(get, "GET", f"{OWN}/query/narrow"))[1]
    assert (told["name"], told["type"], told["owner"], told["visibilityList"]) == ("narrow", "query", "guest", [])
    assert (told["value"], told["description"]) == ({"category": "queue"}, None)
    assert told["associatedObject"] == (await _at(get, "GET", "broker"))[1]["id"]
    assert ("preference", told["id"]) in store.records
    assert (await _at(get, "PUT", f"{OWN}/query/narrow", {"description": "of tests"}))[0] == 200
    [anew] = (await _at(get, "GET", f"{OWN}/query"))[1]
    assert (anew["description"], anew["value"]) == ("of tests", {})
    assert (await _at(get, "POST", f"{OWN}/X-page", [{**NARROW, "id": ID}]))[0] == 200
    assert list((await _at(get, "GET", OWN))[1]) == ["X-page", "query"]
    assert [each["name"] for each in (await _at(get, "GET", f"{OWN}?id={ID}"))[1]["X-page"]] == ["narrow"]
    assert (await _at(get, "GET", f"{OWN}/query/other"))[0] == 404
    assert (await _at(get, "DELETE", f"{OWN}/query/narrow"))[0] == 200
    assert (await _at(get, "DELETE", f"{OWN}?id={ID}"))[0] == 200
    assert (await _at(get, "GET", OWN))[1] == {}
    assert not any(kind == "preference" for kind, _ in store.records)


async def test_put_replaces_and_post_adds(get: Get) -> None:
    """PUT of a list, or a map by type, leaves no other of those; POST changes the one of an id, and adds the rest."""
    await _at(get, "PUT", OWN, {"X-a": [{"name": "1", "id": ID}, {"name": "2"}], "X-b": [{"name": "1"}]})
    [one, _] = (await _at(get, "GET", f"{OWN}/X-a"))[1]
    assert (await _at(get, "POST", f"{OWN}/X-a", [{"name": "one", "id": ID}, {"name": "3"}]))[0] == 200
    told = (await _at(get, "GET", f"{OWN}/X-a"))[1]
    assert [each["name"] for each in told] == ["2", "3", "one"]
    assert (told[2]["id"], told[2]["createdDate"]) == (ID, one["createdDate"])
    assert (await _at(get, "PUT", f"{OWN}/X-a", [{"name": "4"}]))[0] == 200
    everything = (await _at(get, "GET", OWN))[1]
    assert {type_: [each["name"] for each in its] for type_, its in everything.items()} == {"X-a": ["4"], "X-b": ["1"]}
    assert (await _at(get, "PUT", OWN, {}))[0] == 200
    assert (await _at(get, "GET", OWN))[1] == {}


async def test_what_others_see(get: Get, anna: str) -> None:
    """They see what is shown to a group of theirs, and nothing else; only the owner changes or deletes it."""
    shown = {"X-a": [{"name": "shown", "id": ID, "visibilityList": ["staff"]}, {"name": "hidden"}]}
    assert (await _at(get, "PUT", OWN, shown))[0] == 200
    assert [each["name"] for each in (await _at(get, "GET", SEEN, user=anna))[1]["X-a"]] == ["shown"]
    assert (await _at(get, "GET", f"{SEEN}/X-a/hidden", user=anna))[0] == 404
    assert (await _at(get, "GET", OWN, user=anna))[1] == {}
    assert [each["name"] for each in (await _at(get, "GET", f"{SEEN}/X-a"))[1]] == ["hidden", "shown"]
    for method in ("PUT", "POST"):
        status, told = await _at(get, method, f"{OWN}/X-a", [{"name": "mine", "id": ID}], anna)
        assert (status, told["errorMessage"]) == (422, f"id: there is another preference '{ID}'")
    assert (await _at(get, "DELETE", OWN, user=anna))[0] == 200
    assert (await _at(get, "PUT", SEEN, {}, anna))[0] in {403, 404, 405}
    assert len((await _at(get, "GET", f"{OWN}/X-a"))[1]) == 2
    assert (await _at(get, "PUT", f"{OWN}/X-a/b", {"visibilityList": ["others"]}, anna))[0] == 422


async def test_a_user_called_as_a_group(get: Get, client: MgmtClient, anna: str) -> None:
    """Sees nothing that is shown to that group."""
    await client.put_user("staff", "staff", ["monitoring"])
    assert (await _at(get, "PUT", f"{OWN}/X-a/b", {"visibilityList": ["staff"]}, anna))[0] == 200
    for _ in range(100):
        if (await _at(get, "GET", "broker", user="staff"))[0] == 200:
            break
    assert await _at(get, "GET", SEEN, user="staff") == (200, {})


async def test_who_may_not_look(get: Get, anna: str) -> None:
    """Has no preferences there either."""
    assert (await _at(get, "PUT", "user/internal/guest/userpreferences", {}, anna))[0] == 403
    assert (await _at(get, "GET", "user/internal/guest/visiblepreferences", None, anna))[0] == 403


WRONG: list[tuple[str, str, object, int, str]] = [
    ("PUT", "/query/a", [], 422, "a preference is a map"),
    ("PUT", "/query/a", {"name": "b"}, 422, "name: 'b' is said, and by the path it is 'a'"),
    ("PUT", "/nonsense/a", {}, 422, "type: there is no 'nonsense'"),
    ("PUT", "/X-a/a", {"value": "text"}, 422, "value"),
    ("PUT", "/X-a/a", {"value": {"a": "x" * (1 << 16)}}, 422, "value: it has more than"),
    ("PUT", "/X-a/a", {"value": {"a": DEEP}}, 422, "value: it has more than 100 maps and lists within"),
    ("PUT", "/X-a/a", {"visibilityList": ["others"]}, 422, "'guest' is in no group 'others'"),
    ("PUT", "/X-a", {}, 422, "a list of preferences is wanted"),
    ("PUT", "/X-a", [{"name": "a"}, {"name": "a"}], 422, "there is a preference 'a' of type 'X-a' already"),
    ("PUT", "/X-a", [{"name": "a", "id": ID}, {"name": "b", "id": ID}], 422, "two preferences have one"),
    ("PUT", "/X-a", [{"name": "a", "id": "1"}], 422, "id"),
    ("PUT", "", [], 422, "a map is wanted"),
    ("PUT", "", {"query": [{"name": "a", "type": "X-a"}]}, 422, "by the path it is 'query'"),
    ("POST", "/X-a/a", {}, 405, "PUT is wanted"),
    ("DELETE", "?id=1", None, 422, "a UUID is wanted"),
    ("GET", f"?id={ID}&id={ID}", None, 422, "a UUID is wanted, once"),
]


async def test_what_is_wrong(get: Get) -> None:
    """Is told, and nothing is changed by it."""
    for method, path, body, status, why in WRONG:
        answered, told = await _at(get, method, OWN + path, body)
        assert (answered, why in told["errorMessage"]) == (status, True), told
    assert (await _at(get, "GET", OWN))[1] == {}


async def test_the_most(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user can fill the store: the preferences of an owner are limited, at all objects together."""
    monkeypatch.setattr(changing, "MOST", 2)
    for name in ("a", "b"):
        assert (await _at(get, "PUT", f"{OWN}/X-a/{name}", {}))[0] == 200
    assert (await _at(get, "PUT", "port/http/userpreferences/X-a/c", {}))[0] == 422
    assert (await _at(get, "PUT", f"{OWN}/X-a/b", {"description": "again"}))[0] == 200
    assert (await _at(get, "DELETE", f"{OWN}/X-a/a"))[0] == 200
    assert (await _at(get, "PUT", "port/http/userpreferences/X-a/c", {}))[0] == 200


async def test_the_most_bytes(get: Get) -> None:
    """They are in memory as well: all of one owner have so many, and what they say is kept as text there."""
    value = {"a": [{} for _ in range(15_000)]}
    answers = [(await _at(get, "PUT", f"{OWN}/X-a/n{number}", {"value": value}))[0] for number in range(20)]
    assert (answers[0], answers[-1]) == (200, 422)
    assert (await _at(get, "PUT", "port/http/userpreferences/X-a/c", {"value": value}))[0] == 422
    assert (await _at(get, "GET", f"{OWN}/X-a/n0"))[1]["value"] == value
    assert (await _at(get, "DELETE", f"{OWN}/X-a/n0"))[0] == 200
    assert (await _at(get, "PUT", "port/http/userpreferences/X-a/c", {"value": value}))[0] == 200


def test_records_from_before() -> None:
    """Have what a preference says itself, and not as text."""
    said = {"id": ID, "name": "a", "type": "X-a", "owner": "anna", "object": "[]", "created": 1, "updated": 1}
    for value in ({"b": ["ö"]}, '{"b": ["ö"]}'):
        found = Preference.model_validate({**said, "value": value})
        assert found.told("")["value"] == {"b": ["ö"]}
        assert Preference.model_validate_json(found.to_json()) == found


async def test_they_go_with_their_object_and_their_owner(get: Get, store: FakeStore, anna: str) -> None:
    """They are deleted with their object, or one above it; and with their owner."""
    await _at(get, "PUT", "port/x", {"port": 5699})
    await _at(get, "PUT", "port/x/userpreferences/X-a/b", {})
    await _at(get, "PUT", "group/internal/x", {})
    await _at(get, "PUT", "groupmember/internal/x/y", {})
    await _at(get, "PUT", "groupmember/internal/x/y/userpreferences/X-a/below", {})
    await _at(get, "PUT", f"{OWN}/X-a/hers", {}, anna)
    for path, left in (("port/x", ["below", "hers"]), ("group/internal/x", ["hers"]), (f"user/internal/{anna}", [])):
        assert (await _at(get, "DELETE", path))[0] == 200
        kept = [json.loads(record.value) for (kind, _), record in store.records.items() if kind == "preference"]
        assert sorted(each["name"] for each in kept) == left
