"""mgmt's own client of a gateway: where it looks for one, and what it says where there is none."""

from __future__ import annotations

import pytest

from services.common.config import Settings
from services.common.errors import Unavailable
from services.mgmt.by_hand.client import Login, channel
from services.mgmt.by_hand.gateway_host import reachable
from tests.support.ports import free_port


@pytest.mark.parametrize(
    ("gateway", "listens", "host"),
    [
        ("gateway:7000", "", "gateway"),
        ("[::1]:7000", "", "::1"),
        ("", "", "127.0.0.1"),
        ("", "0.0.0.0", "127.0.0.1"),
        ("unix:/run/gateway.sock", "10.0.0.7", "10.0.0.7"),
    ],
)
def test_where(gateway: str, listens: str, host: str) -> None:
    """Where its gRPC is, else on this machine, where it listens."""
    settings = Settings(gateway_address=gateway, amqp_host=listens)
    assert reachable(settings) == host


async def test_no_gateway() -> None:
    """Is reported at once, without the credentials."""
    settings = Settings(amqp_host="127.0.0.1", amqp_port=free_port())
    with pytest.raises(Unavailable, match="no gateway answers") as raised:
        async with channel(settings, Login("anna", "hunter2", "127.0.0.1"), "/"):
            pass
    assert "hunter2" not in str(raised.value) + repr(Login("anna", "hunter2", "127.0.0.1"))
