"""Where operators' ports may be, beside those of the gateways' settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.common import watchers
from services.common.clients.ports import Ports
from services.common.clients.store import StoreClient
from services.common.errors import PreconditionFailed
from services.common.ports import port as ports
from services.common.ports import state
from services.common.ports.port import Port, Terms
from services.common.ports.state import Account, Served
from services.rpc.store_pb2 import Record


class _Store:
    """Gateways that live, and the ports of settings of which some have told."""

    def __init__(self, living: Sequence[str], told: Sequence[str]) -> None:
        role = json.dumps({"role": "gateway"}).encode()
        self.records = [Record(kind=watchers.RECORD_KIND, key=name, value=role) for name in living]
        served = (Served(port=Port(name="amqp", port=5672)),)
        for name in told:
            value = Account(instance=name, served=served).model_dump_json().encode()
            self.records.append(Record(kind=state.RECORD_KIND, key=name, value=value))

    async def list_records(self, kinds: Sequence[str]) -> list[Record]:
        return [each for each in self.records if each.kind in kinds]

    async def read_records(self, *kinds: str) -> Any:
        return SimpleNamespace(records=await self.list_records(kinds), unchanged=None)

    async def put_records(self, puts: Sequence[Record], **_: object) -> None:
        self.records += puts


async def _put(store: _Store) -> bool:
    await Ports(cast("StoreClient", store)).put("own", Terms(port=5672))
    return any(each.kind == ports.RECORD_KIND for each in store.records)


async def test_a_port_of_the_settings_of_all_gateways() -> None:
    """Its address is taken."""
    with pytest.raises(PreconditionFailed, match="port 'amqp' is at"):
        await _put(_Store(["gateway-1", "gateway-2"], ["gateway-1", "gateway-2"]))


@pytest.mark.parametrize("told", [["gateway-1"], [], ["gateway-3"]])
async def test_a_gateway_that_has_not_told(told: list[str]) -> None:
    """May have none at that address; one that lives no more takes none."""
    assert await _put(_Store(["gateway-1", "gateway-2"], told))
