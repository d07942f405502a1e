"""A desk of a gateway, a client whose requests it takes, and a mgmt that answers when it may."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

from services.common.audit.acting import acting
from services.common.message.amqp_0_9 import FORMAT, compose
from services.common.message.facts import facts_of
from services.gateway import vocabulary as v
from services.gateway.management.desk import Desk
from services.rpc import mgmt_pb2 as pb
from tests.support.permitted import everything
from tests.support.published import Client, ScriptedRouter


class Mgmt:
    """In place of a client of mgmt: answers when it may, what a test says."""

    def __init__(self) -> None:
        self.asked: list[pb.ManageRequest] = []
        self.may = asyncio.Event()
        self.may.set()
        self.fault: Exception | None = None

    async def manage(self, request: pb.ManageRequest) -> pb.ManageReply:
        self.asked.append(request)
        self.actor = acting()
        await self.may.wait()
        if self.fault:
            raise self.fault
        return pb.ManageReply(status=200, description="OK", body=json.dumps({"n": len(self.asked)}).encode())

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def numbers(self) -> list[Any]:
        return [json.loads(each.request)["properties"]["n"] for each in self.asked]


class Desked:
    """A client whose publishes to the node are taken; must be made in a running loop."""

    def __init__(self, beside: Desked | None = None, user: str = "guest") -> None:
        """`beside` another one: at the same desk."""
        self.mgmt = beside.mgmt if beside else Mgmt()
        self.desk = beside.desk if beside else Desk(cast("Any", lambda: self.mgmt))
        self.client = Client(ScriptedRouter({v.MANAGEMENT: (), "nowhere": ()}))
        self.client.permitted = everything(user)
        self.client.broker.management = self.desk
        self.client.broker.topology = SimpleNamespace(by_name={})
        for name in ("name", "peer"):
            setattr(self.client, name, f"its {name}")
        self.client.connection = self.client  # type: ignore[attr-defined]
        self.ends(closing=False, parting=False)

    def ends(self, **how: bool) -> None:
        """`closing`: the broker ends the connection; `parting`: the client knows it, or wants it."""
        for name, value in how.items():
            setattr(self.client, name, value)

    async def asks(
        self, *numbers: int, reply_to: str = "replies", body: bytes = b"", first: int = 0, **facts: Any
    ) -> None:
        """All of one read."""
        properties = [
            compose({"reply-to": reply_to, "correlation-id": f"c{n}"}, {"n": n}, persistent=False, priority=0)
            for n in numbers
        ]
        attributes = FORMAT.attributes(properties[0])
        kind = v.Kind(facts_of("/", "", v.MANAGEMENT, FORMAT.name, attributes), attributes, **facts)
        await self.client.does(v.Publish(1, [kind] * len(numbers), properties, [body] * len(numbers), first))

    async def done(self) -> None:
        """All that was taken is."""
        async with asyncio.timeout(5):
            while self.desk._lines:
                await asyncio.sleep(0)

    @property
    def replies(self) -> list[tuple[str, str, int, Any]]:
        """Of each: exchange and key, correlation id, status, body."""
        return [
            (
                f"{facts.exchange}/{facts.routing_key}",
                FORMAT.text(properties, "correlation-id") or "",
                FORMAT.headers(properties).get("statusCode", 0),
                body,
            )
            for messages in self.client.handed.messages
            for facts, properties, body in zip(messages.facts, messages.properties, messages.bodies, strict=True)
        ]
