"""Users over HTTP."""

from __future__ import annotations

from services.common.clients.mgmt import MgmtClient
from services.mgmt.service import Service
from services.rpc import mgmt_pb2 as pb
from tests.support.rest import Get

GUEST = "guest:guest"
ANNA = "/api/access/users/anna"


async def test_a_user_from_beginning_to_end(get: Get, client: MgmtClient) -> None:
    """Made, listed without a password, changed, and gone with what it was permitted."""
    made = {"password": "first", "tags": ["monitoring"], "loopback_only": True}
    assert (await get(ANNA, GUEST, "PUT", made))[0] == 204
    anna = {"name": "anna", "tags": ["monitoring"], "loopback_only": True}
    assert anna in (await get("/api/access/users"))[1]
    assert (await get("/api/ports", "anna:first"))[0] == 200
    assert (await get(ANNA, GUEST, "PATCH", {"password": "second", "tags": []}))[0] == 204
    assert [(await get("/api/ports", f"anna:{password}"))[0] for password in ("first", "second")] == [401, 403]
    assert {**anna, "tags": []} in (await get("/api/access/users"))[1]
    permission = pb.Permission(user="anna", configure=".*", write=".*", read=".*")
    await client.change_access(put_permission=permission)
    assert (await get(ANNA, GUEST, "DELETE"))[0] == 204
    assert "anna" not in {each["user"] for each in (await get("/api/access"))[1]["permissions"]}
    assert (await get(ANNA, GUEST, "DELETE"))[0] == 404


async def test_a_hash_of_rabbitmq(get: Get) -> None:
    """A move from RabbitMQ brings its hash of a password, which is "test12" here."""
    told = {"password": "rabbitmq-sha256:kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "kind": "rabbitmq-sha256"}
    status, body, _ = await get(ANNA, GUEST, "PUT", {**told, "hashed": True, "tags": ["monitoring"]})
    assert status == 204, body
    assert [(await get("/api/ports", f"anna:{password}"))[0] for password in ("test12", "test13")] == [200, 401]


async def test_what_is_wrong_with_a_user(get: Get, mgmt: Service) -> None:
    """It is said, and nothing of a password with it."""
    for body in ({}, {"password": ""}, {"password": "tell-nobody", "kind": "rot13"}, {"password": "p", "more": 1}):
        status, answer, _ = await get(ANNA, GUEST, "PUT", body)
        assert (status, "tell-nobody" in str(answer)) == (400 if body else 422, False), answer
    assert (await get("/api/access/users/nobody", GUEST, "PATCH", {"tags": []}))[0] == 404
    assert "anna" not in {each["name"] for each in (await get("/api/access/users"))[1]}
