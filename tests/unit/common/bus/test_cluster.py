"""A cluster of NATS servers: each knows the others, and lets no other server in."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.common import secret
from services.common.bus.server import Cluster, command
from services.store.providers.jetstream import JetStreamProvider
from tests.support.ports import free_port
from tests.support.stack import HOST
from tests.support.written_groups import alive, commit, group


@pytest.fixture
def ports() -> list[int]:
    return [free_port() for _ in range(3)]


@pytest.fixture
def peers(tmp_path: Path, ports: list[int]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Three, of a stack that has a secret."""
    secret.use("of this stack alone")
    own = [free_port() for _ in range(3)]
    others = [f"{HOST}:{port}" for port in own]
    commands = [
        command(tmp_path / name, HOST, ports[number], Cluster(name, own[number], others))
        for number, name in enumerate(("n1", "n2", "n3"))
    ]
    running = [subprocess.Popen([*each, "--log", tmp_path / f"{n}.log"]) for n, each in enumerate(commands)]
    yield running
    for process in running:
        process.kill()
        process.wait()
    secret.use("")


async def test_a_store_on_three(peers: list[subprocess.Popen[bytes]], ports: list[int]) -> None:
    """A store says the secret of the stack to them, has three copies, and goes on without one of them."""
    provider = JetStreamProvider(Path(), f"nats://{','.join(f'{HOST}:{port}' for port in ports)}/S")
    await opened(provider)
    await provider.commit(group(1))
    peers[0].kill()
    await commit(provider, group(2))
    assert list(await alive(provider)) == [1, 2]
    link = provider._writer.link
    assert link
    assert (await link._jetstream.stream_info("S")).config.num_replicas == 3
    await provider.close()


async def opened(provider: JetStreamProvider) -> None:
    """They may not listen yet."""
    deadline = time.monotonic() + 30
    while True:
        try:
            await provider.open()
        except Exception:
            if time.monotonic() > deadline:
                raise
        else:
            return


def test_only_its_owner_reads_its_file(tmp_path: Path) -> None:
    """What it is told of its peers has the token in it, which is in no command."""
    secret.use("of this stack alone")
    try:
        told = command(tmp_path, HOST, 4222, Cluster("n1", 6222, ["n1", "n2:7000"]))
        token = secret.nats_token()
        assert not any(token in word for word in told)
        text = (tmp_path / "auth.conf").read_text()
        assert f'routes: ["nats://hopline:{token}@n1:6222", "nats://hopline:{token}@n2:7000"]' in text
        assert f'authorization {{ user: hopline, password: "{token}" }}' in text
        assert "sync_interval: always" in text
        assert (tmp_path / "auth.conf").stat().st_mode & 0o777 == 0o600
    finally:
        secret.use("")
