"""What keepers remember of what they have made."""

from __future__ import annotations

import gc
import weakref

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.tree.queues import Queues
from tests.unit.mgmt.tree.conftest import Managed


def _objects() -> int:
    gc.collect()
    return sum(isinstance(each, ConfiguredObject) for each in gc.get_objects())


async def test_what_is_not_there(managed: Managed) -> None:
    """Requests for missing virtual hosts leave nothing behind."""
    await managed.mgmt._house.users.put("man", "man", ["management"], loopback_only=False)
    for number in range(2):
        assert (await managed("PUT", f"virtualhost/x{number}/x{number}", {}, "man:man"))[0] == 403
    before = _objects()
    for number in range(10):
        assert (await managed("PUT", f"virtualhost/y{number}/y{number}", {}, "man:man"))[0] == 403
    assert _objects() - before < 10


async def test_what_is_gone(managed: Managed) -> None:
    """What was made below a virtual host is deleted with it; what exists is made once."""
    assert (await managed("PUT", "virtualhost/v/v", {}))[0] == 201
    assert (await managed("PUT", "queue/v/v/q", {}))[0] == 201
    tree, where = managed.mgmt._tree, ["v", "v", "q"]
    queue = weakref.ref(tree.one("queue", where))
    assert tree.one("queue", where) is queue()
    assert (await managed("DELETE", "virtualhost/v/v"))[0] == 200
    assert (await managed("PUT", "virtualhost/w/w", {}))[0] == 201
    assert (await managed("PUT", "queue/w/w/q", {}))[0] == 201
    gc.collect()
    assert queue() is None
    keeper = tree.categories["queue"]
    assert isinstance(keeper, Queues)
    assert keeper._told.keys() == {"w"}
