"""Rules of Broker-J's ACL files, asked of what is done over HTTP: they mean what they mean over AMQP."""

from __future__ import annotations

import pytest

from services.common.clients.mgmt import MgmtClient
from services.common.errors import SyntaxFault
from services.rpc import mgmt_pb2 as pb
from tests.unit.mgmt.rabbitmq.conftest import Asked

ANNA = "anna:pw"
RULES = """
ACL ALLOW anna ACCESS MANAGEMENT
ACL DENY anna ALL QUEUE durable=true
ACL DENY anna BIND EXCHANGE durable=true
ACL DENY anna UNBIND EXCHANGE durable=true
ACL ALLOW anna ALL ALL
CONFIG DEFAULTDEFER=TRUE
"""
KEPT, PASSING = "queues/%2F/kept", "queues/%2F/passing"
WHY = "more than 10000 characters, if what repeats were written as often"
IN_TREE = "latest/queue/%252F/%252F"


async def test_a_rule_by_what_a_queue_is_like(asked: Asked) -> None:
    """Denied by a queue's properties: purge, get, bind, unbind and delete, by RabbitMQ's API and by Broker-J's."""
    assert (await asked("PUT", KEPT, {"durable": True}))[0] == 201
    assert (await asked("PUT", PASSING, {"durable": False}))[0] == 201
    for name in ("kept", "passing"):
        assert (await asked("POST", f"bindings/%2F/e/amq.topic/q/{name}", {"routing_key": "k"}))[0] == 201
    assert (await asked("PUT", "users/anna", {"password": "pw", "tags": "administrator"}))[0] == 201
    assert (await asked("PUT", "access/acl", {"text": RULES}))[0] == 204
    for name, allowed in (("kept", False), ("passing", True)):
        for method, path, body in (
            ("DELETE", f"queues/%2F/{name}/contents", None),
            ("POST", f"queues/%2F/{name}/get", {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}),
            ("POST", f"bindings/%2F/e/amq.topic/q/{name}", {"routing_key": "n"}),
            ("DELETE", f"bindings/%2F/e/amq.topic/q/{name}/k", None),
            ("POST", f"{IN_TREE}/{name}/clearQueue", {}),
            ("POST", "latest/virtualhost/%252F/%252F/clearQueues", {"queues": [name]}),
            ("POST", "latest/exchange/%252F/%252F/amq.topic/bind", {"destination": name, "bindingKey": "t"}),
            ("DELETE", f"{IN_TREE}/{name}", None),
        ):
            status, told = await asked(method, path, body, user=ANNA)
            assert status < 300 if allowed else "refused for user" in str(told), (method, path, status, told)
    assert (await asked("DELETE", KEPT, user=ANNA))[0] == 401
    assert (await asked("GET", KEPT))[0] == 200


async def test_a_rule_by_what_is_changed(asked: Asked) -> None:
    """A user who may change some attributes of users changes no other: tags would make an administrator."""
    for name in ("anna", "bob"):
        assert (await asked("PUT", f"users/{name}", {"password": "pw", "tags": "management"}))[0] == 201
    rules = (
        'ACL ALLOW anna ACCESS MANAGEMENT\nACL ALLOW anna UPDATE USER attributes="password"\nCONFIG DEFAULTDEFER=TRUE'
    )
    assert (await asked("PUT", "access/acl", {"text": rules}))[0] == 204
    for path in ("access/users/bob", "latest/user/internal/bob"):
        method = "PATCH" if path.startswith("access") else "POST"
        assert (await asked(method, path, {"password": "other"}, user=ANNA))[0] in {200, 204}
        for change in ({"tags": ["administrator"]}, {"password": "other", "tags": ["administrator"]}):
            assert (await asked(method, path, change, user=ANNA))[0] == 403, (path, change)
    assert (await asked.get("users/bob"))["tags"] == ["management"]


async def test_an_expression_that_is_too_large(asked: Asked) -> None:
    """Is refused at once, with the reason, by every way in; nothing is changed."""
    too_large = {"configure": "", "write": "", "read": "((a{300}){300}){300}"}
    before = await asked.get("permissions")
    for path in ("access/permissions/guest", "permissions/%2F/guest"):
        status, told = await asked("PUT", path, too_large)
        assert status in {400, 422}, (path, status)
        assert WHY in str(told), path
    definitions = {"permissions": [{"user": "guest", "vhost": "/", **too_large}]}
    _, told = await asked("POST", "definitions", definitions)
    assert [WHY in each["reason"] for each in told["left_out"]] == [True]
    async with MgmtClient(asked.house.settings.address_of("mgmt")) as client:
        with pytest.raises(SyntaxFault, match=WHY):
            await client.change_access(put_permission=pb.Permission(user="guest", **too_large))
    assert await asked.get("permissions") == before
