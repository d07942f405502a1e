"""What is said of queue processes that come and go."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from services.common.clients.parting import Partings

LINK: Any = SimpleNamespace(member="queue-1-a", address="unix:queue-1.sock")


def _owned(*numbers: int) -> dict[int, Any]:
    return {number: SimpleNamespace(member=LINK.member, epoch=1) for number in numbers}


def test_a_loss_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """However often it is called in vain until its leases end; and once when it is back, and again when that ends."""
    partings = Partings()
    partings.know(_owned(1, 2))
    partings.connected(LINK)
    for _ in range(20):
        partings.tell(LINK, [])
        partings.know(_owned(1, 2))
    assert capsys.readouterr().out.count("lost queue process; ") == 1
    partings.connected(LINK)
    partings.connected(LINK)
    assert capsys.readouterr().out.count("lost queue process is back") == 1
    partings.tell(LINK, [])
    assert capsys.readouterr().out.count("lost queue process; ") == 1


def test_its_leases_have_ended(capsys: pytest.CaptureFixture[str]) -> None:
    """What comes of it later is another story."""
    partings = Partings()
    partings.know(_owned(1))
    partings.tell(LINK, [])
    partings.know({})
    partings.know(_owned(2))
    partings.tell(LINK, [])
    assert capsys.readouterr().out.count("lost queue process; ") == 2
