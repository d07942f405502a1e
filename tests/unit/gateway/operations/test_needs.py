"""What requests need to be allowed, of what is there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from services.common.access.action import Action
from services.common.access.asked import Asked
from services.common.message import arguments
from services.common.topology.slots import SlotName
from services.gateway import vocabulary as v
from services.gateway.operations import needs
from services.rpc.router_pb2 import QueueDefinition

_SAID = {"x-durable-link": {"link": "l"}}


@pytest.mark.parametrize(("there", "deletes"), [(None, False), (_SAID, False), ({"x-durable-link": {}}, True)])
def test_a_queue_in_the_place_of_another(there: dict[str, Any] | None, *, deletes: bool) -> None:
    """Who may delete none may have one that is not there, and one that is there as it wants it."""
    found: list[Asked] = []
    known = {SlotName("/", "q"): QueueDefinition(name="q", arguments=arguments.dump(there))} if there else {}
    session: Any = SimpleNamespace(
        broker=SimpleNamespace(topology=SimpleNamespace(by_name=known)),
        connection=SimpleNamespace(virtual_host="/"),
        permitted=SimpleNamespace(check=found.append),
        last_queue="",
    )
    queue = v.DeclareQueue(1, "q", durable=True, arguments=_SAID)
    needs.replace_queue(session, v.ReplaceQueue(1, queue, v.Bind(1, "x", "q", False, "#", {})))
    asked = [each.action for each in found]
    assert asked == [*[Action.DELETE] * deletes, Action.CREATE, Action.CONSUME, Action.BIND]
