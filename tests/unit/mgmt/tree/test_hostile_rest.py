"""Broker-J's tree with hostile, or broken, requests."""

from __future__ import annotations

import gc
import time
from typing import Any

from fastapi import Request

from services.common.access.records import Permission
from services.mgmt.rest.model.reading import parameters
from tests.unit.mgmt.tree.conftest import HOST, Managed

_DEEP: Any = 1
for _ in range(400):
    _DEEP = [_DEEP]


async def test_what_no_object_can_be_like(managed: Managed) -> None:
    """Is told, and is no fault of the server's."""
    for path, body, reason in (
        (f"group/internal/{'g' * 300}", {}, "at most 255 characters"),
        (f"port/{'p' * 300}", {"port": 45671}, "at most 255 characters"),
        ("user/internal/u", {"password": "p", "tags": [1, {}]}, "a list of texts is wanted"),
        ("user/internal/u", {"password": "p", "tags": '["\\ud800"]'}, "a list is wanted"),
        (f"queue/{HOST}/q", {"arguments": "[" * 50_000}, "a map is wanted"),
        (f"queue/{HOST}/q", {"arguments": {"x": _DEEP}}, "too many in each other"),
    ):
        status, told = await managed("PUT", path, body)
        assert (status, reason in told["errorMessage"]) == (422, True), told


async def test_what_nobody_would_heed(managed: Managed) -> None:
    """Is refused, rather than taken for something else, or for nothing."""
    assert (await managed("PUT", "user/internal/u", {"password": "p"}))[0] == 201
    assert (await managed("PUT", f"queue/{HOST}/there", {}))[0] == 201
    odd = {"destination": "amq.topic", "nonsense": 1}
    for method, path, body, reason in (
        ("PUT", "port/p", {"port": 45671, "type": "HTTP"}, "ports of HTTP are of the settings"),
        ("PUT", "port/p", {"port": 45671, "transports": []}, "attribute 'transports'"),
        ("POST", "user/internal/u", {"hashed": True}, "attribute 'hashed' says how a password is kept"),
        ("POST", "user/internal/u", {"credentialKind": "bcrypt", "password": "********"}, "'credentialKind' says"),
        ("PUT", f"queue/{HOST}/q", {"alternateBinding": odd}, "there is no 'nonsense' in one here"),
        ("PUT", f"exchange/{HOST}/e", {"type": "topic", "alternateBinding": odd}, "there is no 'nonsense' in one"),
        ("PUT", f"queue/{HOST}/q", {"alternateBinding": {**odd, "attributes": 1}}, "attributes are a map"),
        ("PUT", f"queue/{HOST}/q", {"alternateBinding": {"destination": {"a": 1}}}, "with a destination is wanted"),
        ("PUT", f"queue/{HOST}/q", {"alternateBinding": {"destination": [["a"]]}}, "with a destination is wanted"),
        ("PUT", f"exchange/{HOST}/e", {"type": "topic", "alternateBinding": {**odd, "attributes": 1}}, "are a map"),
        ("POST", f"queue/{HOST}/there", {"alternateBinding": {**odd, "attributes": [1]}}, "attributes are a map"),
        ("POST", f"queue/{HOST}/there", {"alternateBinding": {"destination": {"a": 1}}}, "with a destination"),
    ):
        status, told = await managed(method, path, body)
        assert (status, reason in told["errorMessage"]) == (422, True), told
    assert (await managed("PUT", "broker/userpreferences/X-%25FF/p", {}))[0] == 400


async def test_exchanges_without_a_name(managed: Managed) -> None:
    """Where a name is wanted, what is none is refused by the router, as it is over AMQP."""
    for path, body in (
        (f"queue/{HOST}/q", {"arguments": {"x-dead-letter-exchange": 5}}),
        (f"queue/{HOST}/q", {"arguments": {"x-dead-letter-exchange": {"a": []}}}),
        (f"exchange/{HOST}/e", {"type": "topic", "alternateBinding": {"destination": {"a": 1}}}),
    ):
        status, told = await managed("PUT", path, body)
        assert (status, "must be text" in told["errorMessage"]) == (409, True), told


async def test_numbers_that_nobody_could_be_told(managed: Managed) -> None:
    """Are refused: a list that has one of them could not be shown."""
    status, told = await managed("PUT", f"queue/{HOST}/q", b'{"arguments": {"x": 1e400}}')
    assert (status, told["errorMessage"]) == (400, "the body is no JSON: 1e400 is no number")


async def test_names_that_are_no_text(managed: Managed) -> None:
    """Are refused, also where they are encoded twice: two of them would be read as the same."""
    for path in (f"queue/{HOST}/%25FF", "querybroker/%25FF", "queryvhost/%25FF/%25FF/queue"):
        assert await managed("GET", path) == (400, {"errorMessage": "names in paths are UTF-8"})


async def test_alternate_exchanges(managed: Managed) -> None:
    """Of an exchange to be are asked about, whether an attribute names them or an argument does."""
    users, grants = managed.mgmt._house.users, managed.mgmt._house.grants
    await users.put("own", "secret", ("administrator",), loopback_only=False)
    await grants.put_permission(Permission(user="own", configure="^own", write="^own", read="^own"))
    for named in (
        {"alternateBinding": {"destination": "amq.topic"}},
        {"arguments": {"alternate-exchange": "amq.topic"}},
    ):
        status, told = await managed("PUT", f"exchange/{HOST}/own-e", {"type": "topic", **named}, "own:secret")
        assert (status, "amq.topic" in told["errorMessage"]) == (403, True), told


async def test_what_is_too_long_to_be_kept(managed: Managed) -> None:
    """Is refused before anything is done: a request answered with 422 has made and changed nothing."""
    too_long = {"description": "x" * 70_000}
    status, told = await managed("PUT", "group/internal/g", too_long)
    assert (status, "65536 characters" in told["errorMessage"]) == (422, True), told
    assert (await managed("GET", "group/internal/g"))[0] == 404
    assert (await managed("PUT", "user/internal/bob", {"password": "one"}))[0] == 201
    change = {"password": "two", "tags": ["administrator"], **too_long}
    assert (await managed("PUT", "user/internal/bob", change))[0] == 422
    assert (await managed("GET", "user/internal/bob"))[1]["tags"] == []
    for long in ({"name": "v", "value": "x" * 70_000}, {"name": "ü" * 128, "value": "x"}):
        assert (await managed("POST", "broker/setContextVariable", long))[0] == 422


async def test_arguments_that_are_too_deep(managed: Managed) -> None:
    """By RabbitMQ's API too, and in definitions: 400, and no fault of the server's."""
    told = {"arguments": {"x": _DEEP}}
    for method, path, body in (
        ("PUT", "queues/%2F/q", told),
        ("PUT", "exchanges/%2F/e", {"type": "topic", **told}),
        ("POST", "bindings/%2F/e/amq.topic/e/amq.fanout", {"routing_key": "", **told}),
    ):
        status, answer, _ = await managed.ask(f"/api/{path}", "guest:guest", method, body)
        assert (status, answer["error"]) == (400, "bad_request"), answer
    definitions = {"queues": [{"name": "q", "vhost": "/", **told}, {"name": "plain", "vhost": "/"}]}
    status, answer, _ = await managed.ask("/api/definitions", "guest:guest", "POST", definitions)
    assert (status, [each["name"] for each in answer["left_out"]]) == (200, ["q"]), answer


async def test_the_name_of_an_attachment(managed: Managed) -> None:
    """Is one that a header can have."""
    asked = "broker?contentDispositionAttachmentFilename="
    assert (await managed("GET", f"{asked}%D0%96"))[0] == 400
    assert "a b.json" in (await managed.headers("GET", f"{asked}a%20b.json"))["Content-Disposition"]


def _work(count: int) -> float:
    """Of the processor, for so many parameters."""
    query = "&".join(f"{number:x}" for number in range(count)) + "&a=1"
    request = Request({"type": "http", "query_string": query.encode()})
    began = time.thread_time()
    assert parameters(request)["a"] == ["", "1"]
    return time.thread_time() - began


def test_many_parameters() -> None:
    """As many as a head has room for are told apart at once: ten times as many are no hundred times the work."""
    gc.collect()
    gc.disable()  # or the garbage of other tests is counted
    try:
        assert min(_work(13_000) for _ in range(3)) < 40 * min(_work(1_300) for _ in range(3))
    finally:
        gc.enable()
