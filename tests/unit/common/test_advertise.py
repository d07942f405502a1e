from __future__ import annotations

import pytest

from services.common.advertise import reachable_address


@pytest.mark.parametrize("listens", ["unix:/run/queue.sock", "127.0.0.1:7000", "queue-3:7000", "[::1]:7000"])
async def test_one_address(listens: str) -> None:
    """A process that listens at one address is reached there."""
    assert await reachable_address(listens, "store:7000") == listens


@pytest.mark.parametrize("listens", ["0.0.0.0:7000", "[::]:7000"])
async def test_every_address(listens: str) -> None:
    """A process that listens at all addresses is reached at the one that it has on the way to its peer."""
    assert await reachable_address(listens, "127.0.0.1:1") == "127.0.0.1:7000"
    assert await reachable_address(listens, "dns:///127.0.0.2:1") == "127.0.0.1:7000"


async def test_no_way() -> None:
    """A peer that has no address is an error, not a guess."""
    with pytest.raises(OSError, match=r"."):
        await reachable_address("0.0.0.0:7000", "no-such-host.invalid:1")
