from __future__ import annotations

from pathlib import Path

import pytest

from services.common.config import Settings
from services.common.runtime import CannotStart
from services.supervisor.program import stages


def test_order_and_addresses(tmp_path: Path) -> None:
    """The store comes first and the gateway last; every queue process has a name and a socket of its own."""
    planned = stages(Settings(data=tmp_path, queue_processes=3))
    assert [[program.name for program in stage] for stage in planned] == [
        ["store"],
        ["router"],
        ["queue-1", "queue-2", "queue-3"],
        ["mgmt"],
        ["gateway"],
    ]
    second = planned[2][1]
    assert second.command[-3:] == second.arguments == ("queue", "--name", "queue-2")
    assert second.address == f"unix:{tmp_path}/run/queue-2.sock"


def test_one_address_for_several_queue_processes(tmp_path: Path) -> None:
    """One configured queue address is enough for one queue process only."""
    settings = Settings(data=tmp_path, queue_address="127.0.0.1:7003", queue_processes=2)
    with pytest.raises(CannotStart, match="HOPLINE_QUEUE_ADDRESS"):
        stages(settings)
    alone = stages(settings.model_copy(update={"queue_processes": 1}))
    assert alone[2][0].address == "127.0.0.1:7003"


def test_several_routers(tmp_path: Path) -> None:
    """The first one has the plain name, which commands ask; each has a socket of its own, and none a shared address."""
    planned = stages(Settings(data=tmp_path, routers=2))
    assert [program.name for program in planned[1]] == ["router", "router-2"]
    assert planned[1][1].command[-3:] == ("router", "--name", "router-2")
    assert planned[1][1].address == f"unix:{tmp_path}/run/router-2.sock"
    with pytest.raises(CannotStart, match="HOPLINE_ROUTER_ADDRESS"):
        stages(Settings(data=tmp_path, routers=2, router_address="127.0.0.1:7001"))


def test_several_gateways(tmp_path: Path) -> None:
    """Each has a socket of its own, and a name that no gateway calls itself; none has a shared address."""
    planned = stages(Settings(data=tmp_path, gateways=2))
    assert [program.name for program in planned[-1]] == ["gateway", "gateway-process-2"]
    assert planned[-1][1].command[-3:] == ("gateway", "--name", "gateway-process-2")
    assert planned[-1][1].address == f"unix:{tmp_path}/run/gateway-process-2.sock"
    with pytest.raises(CannotStart, match="HOPLINE_GATEWAY_ADDRESS is one address for 2 gateways"):
        stages(Settings(data=tmp_path, gateways=2, gateway_address="127.0.0.1:7000"))


def test_several_store_processes(tmp_path: Path) -> None:
    """Each has a name and a socket of its own; without something that they share they are refused, with what to do."""
    settings = Settings(data=tmp_path, store_processes=2, store_url="postgresql://db/hopline")
    stores = stages(settings)[0]
    assert [program.name for program in stores] == ["store-1", "store-2"]
    assert stores[1].arguments == ("store", "--name", "store-2")
    assert stores[1].address == f"unix:{tmp_path}/run/store-2.sock"
    urls = {"HOPLINE_STORE_URL", "HOPLINE_STORE_CONFIGURATION_URL"}
    assert all(program.secrets == urls for program in stores)
    for lacking in ({"store_url": ""}, {"store_configuration_url": "sqlite:"}):
        with pytest.raises(CannotStart, match=r"set HOPLINE_STORE_URL, .*, or HOPLINE_STORE_PROCESSES=1"):
            stages(Settings(**{"data": tmp_path, "store_processes": 2, "store_url": "nats://n1", **lacking}))
    with pytest.raises(
        CannotStart, match="HOPLINE_STORE_ADDRESS is one address for 2 store processes; unset it, or set "
    ):
        stages(settings.model_copy(update={"store_address": "127.0.0.1:7001"}))
