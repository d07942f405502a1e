"""A certificate that gateways make for themselves, in a folder that they share."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.gateway.transport import self_signed as module
from services.gateway.transport.self_signed import self_signed


def test_gateways_that_start_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them makes it, and the others show that: a client that trusts the file may come to any."""
    made: list[bytes] = []
    make = module._make

    def slow() -> bytes:
        made.append(make())
        time.sleep(0.2)
        return made[-1]

    monkeypatch.setattr(module, "_make", slow)
    path = tmp_path / "tls" / "self-signed.pem"
    with ThreadPoolExecutor(3) as gateways:
        shown = list(gateways.map(lambda _: self_signed(path).read_bytes(), range(3)))
    assert shown == made * 3
