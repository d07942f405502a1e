"""What a refused connection proves."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from services.common.clients.reachable import is_gone
from tests.support.ports import free_port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "dns:///127.0.0.1"])
async def test_a_process_of_this_machine(host: str) -> None:
    """The kernel here knows whether a process listens at an address of its own."""
    assert await is_gone(f"{host}:{free_port()}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not await is_gone(f"{host}:{server.getsockname()[1]}")


async def test_a_socket_in_a_folder(tmp_path: Path) -> None:
    """Neither a path that is not there nor one that a process left behind is listened at."""
    path = tmp_path / "s.sock"
    assert await is_gone(f"unix:{path}")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert not await is_gone(f"unix:{path}")
    assert path.exists()
    assert await is_gone(f"unix://{path}")


@pytest.mark.parametrize("host", ["0.0.0.0", "store.invalid"])
async def test_a_refusal_over_a_network_proves_nothing(host: str) -> None:
    """A connection to an address that is not this machine's own by its name may be refused by any on the way."""
    assert not await is_gone(f"{host}:{free_port()}")
