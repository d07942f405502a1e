"""What management keeps of objects, when others delete them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Set as AbstractSet

from pamqp import commands

from services.common.clients.store import StoreClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.mgmt.service import Service
from tests.support.rest import asking
from tests.unit.mgmt.tree.conftest import HOST, Managed

KEPT = "configured_object"


async def _until_kept(managed: Managed, names: AbstractSet[str]) -> None:
    found: set[str] = set()
    store = StoreClient(managed.house.address_of("store"))
    for _ in range(100):
        found = {json.loads(each.key)[-2] for each in await store.list_records([KEPT])}
        if found == names:
            break
        await asyncio.sleep(0.02)
    await store.close()
    assert found == names


async def _permitted(managed: Managed) -> list[str]:
    """Where anna may do something."""
    return [each["vhost"] for each in (await managed.ask("/api/users/anna/permissions"))[1]]


async def test_what_others_delete(managed: Managed) -> None:
    """Leaves nothing behind, over whatever protocol: the next of its name has no description, and no record stays."""
    said = {"description": "of the first"}
    assert (await managed("PUT", f"exchange/{HOST}/e", {"type": "direct", **said}))[0] == 201
    for path in (f"queue/{HOST}/q", f"queue/{HOST}/other"):
        assert (await managed("PUT", path, said))[0] == 201
    client = await managed.house.connect()
    await client.call(1, commands.Exchange.Delete(exchange="e"), commands.Exchange.DeleteOk)
    await client.call(1, commands.Queue.Delete(queue="q"), commands.Queue.DeleteOk)
    await _until_kept(managed, {"other"})
    await client.call(1, commands.Exchange.Declare(exchange="e", durable=True), commands.Exchange.DeclareOk)
    for _ in range(50):
        status, told = await managed("GET", f"exchange/{HOST}/e")
        if status == 200:
            break
    assert "description" not in told
    assert (await managed("GET", f"queue/{HOST}/other"))[1]["description"] == "of the first"


async def test_a_virtual_host_made_again_while_nobody_looks(managed: Managed) -> None:
    """Another one of that name has no description, nor have its exchanges; nobody may do there what they might."""
    paths, said = ("virtualhost/work/work", "exchange/work/work/amq.topic"), {"description": "of the first"}
    assert (await managed("PUT", paths[0], said))[0] == 201
    assert (await managed("POST", paths[1], said))[0] == 200
    assert [(await managed("GET", path))[1]["description"] for path in paths] == ["of the first"] * 2
    terms = {"configure": ".*", "write": ".*", "read": ".*"}
    for path, about in (
        ("users/anna", {"password": "secret", "tags": ""}),
        *((f"permissions/{host}/anna", terms) for host in ("work", "%2F")),
    ):
        assert (await managed.ask(f"/api/{path}", "guest:guest", "PUT", about))[0] == 201
    await managed.mgmt.stop()
    async with VirtualHostsClient(managed.house.address_of("router")) as hosts:
        await hosts.delete("work")
        await hosts.create("work")
    again = Service(managed.house.settings)
    await again.start()
    late = managed._replace(mgmt=again, ask=asking(again.http_port))
    assert [(await late("GET", path))[1].get("description") for path in paths] == [None] * 2
    await _until_kept(late, set())
    async with asyncio.timeout(5):
        while await _permitted(late) != ["/"]:
            await asyncio.sleep(0.02)
    await again.stop()
