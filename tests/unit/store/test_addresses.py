"""Where a store process listens, by itself and as one of several."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.config import Settings
from services.store.addresses import Addresses


def test_one_by_itself(tmp_path: Path) -> None:
    """It is at the store's address, and nowhere else."""
    there = f"unix:{tmp_path}/run/store.sock"
    assert Addresses.of(Settings(data=tmp_path), "store") == Addresses(there, there)
    assert Addresses.of(Settings(store_address="0.0.0.0:7000"), "store") == Addresses("0.0.0.0:7000", "0.0.0.0:7000")


async def test_over_a_network(tmp_path: Path) -> None:
    """Each listens at an address of its own, where all others look; how it is it says at another port."""
    settings = Settings(store_address="store:7000", store_listen="0.0.0.0:7000", store_process_address="0.0.0.0:7001")
    addresses = Addresses.of(settings, "store")
    assert addresses == Addresses("store:7000", "0.0.0.0:7000", "0.0.0.0:7001")
    addresses.lead()


@pytest.mark.parametrize(
    ("name", "each"),
    [
        ("127.0.0.1:7000", ["127.0.0.1:7000"]),
        ("dns:///127.0.0.2:7000", ["127.0.0.2:7000"]),
        ("[::1]:7000", ["[::1]:7000"]),
        ("ipv4:127.0.0.1:1,127.0.0.1:2", ["127.0.0.1:1", "127.0.0.1:2"]),
    ],
)
async def test_the_processes_that_a_name_leads_to(name: str, each: list[str]) -> None:
    """A process that listens there may be one that writes, this process as well."""
    assert await Addresses(name, "0.0.0.0:7000", "0.0.0.0:7001").writers() == each


async def test_the_process_at_the_name(tmp_path: Path) -> None:
    """The store's socket leads to that of the process that began to write last."""
    settings = Settings(data=tmp_path, store_processes=2)
    first, second = (Addresses.of(settings, name) for name in settings.store_names)
    assert first.own == f"unix:{tmp_path}/run/store-1.sock"
    assert [await each.writers() for each in (first, second)] == [[second.serving], [first.serving]]
    (tmp_path / "run").mkdir()
    for addresses in (first, second, second, first):
        addresses.lead()
        assert (tmp_path / "run/store.sock").readlink() == Path(addresses.serving).relative_to(f"unix:{tmp_path}/run")
