"""What is said of queue processes that come and go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from structlog.testing import capture_logs

from services.common.clients.parting import Partings

LINK: Any = SimpleNamespace(member="queue-1-a", address="unix:queue-1.sock")
LOST = "lost queue process; what it had not confirmed goes to its successor"
BACK = "lost queue process is back"


def _owned(*numbers: int) -> dict[int, Any]:
    return {number: SimpleNamespace(member=LINK.member, epoch=1) for number in numbers}


def _said(logged: list[Any]) -> list[str]:
    return [line["event"] for line in logged if line["log_level"] != "debug"]


def test_a_loss_is_said_once() -> None:
    """However often it is called in vain until its leases end, and another process answers at its address; and once
    that it is back, and again when that ends.
    """
    partings = Partings()
    partings.know(_owned(1, 2))
    with capture_logs() as logged:
        partings.connected(LINK)
        for _ in range(20):
            partings.tell(LINK, [])
            partings.connected(LINK)
            partings.know(_owned(1, 2))
        partings.heard(LINK)
        partings.heard(LINK)
        partings.tell(LINK, [])
    assert _said(logged) == ["connected to queue process", LOST, BACK, LOST]


def test_its_leases_have_ended() -> None:
    """What comes of it later is another story."""
    partings = Partings()
    partings.know(_owned(1))
    with capture_logs() as logged:
        partings.tell(LINK, [])
        partings.know({})
        partings.know(_owned(2))
        partings.connected(LINK)
        partings.tell(LINK, [])
    assert _said(logged) == [LOST, "connected to queue process", LOST]
