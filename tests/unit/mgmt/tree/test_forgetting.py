"""What management keeps of objects, when others delete them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Set as AbstractSet

from pamqp import commands

from services.common.clients.store import StoreClient
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
