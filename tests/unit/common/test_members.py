from __future__ import annotations

import asyncio

import pytest

from services.common.clients import members
from services.common.clients.members import named
from services.common.errors import NotFound, PreconditionFailed

LOCAL = {"queue-1-aa11": "unix:/run/queue-1.sock", "queue-2-bb22": "unix:/run/queue-2.sock"}
# docker compose: a container's host name is its id, and its address is what its network knows it by.
COMPOSE = {
    "queue-2f00d3a8b1c4-aa11": "172.18.0.6:7000",
    "queue-3e9c1b77a0d2-bb22": "172.18.0.7:7000",
    "queue-3ea17c55fe01-cc33": "172.18.0.8:7000",
}
CONTAINERS = {
    "172.18.0.6": "hopline-queue-1.hopline_hopline",
    "172.18.0.7": "hopline_queue_2.hopline_hopline",
    "172.18.0.8": "hopline-queue-12.hopline_hopline",
}
PODS = {"queue-hopline-queue-0-aa11": "10.1.0.4:7000", "queue-hopline-queue-1-bb22": "10.1.0.5:7000"}


async def host_name(ip: str) -> str:
    """As Docker's name server; it knows nothing of pods."""
    if ip not in CONTAINERS:
        raise OSError("nobody knows")
    return CONTAINERS[ip]


@pytest.mark.parametrize(
    ("alive", "to", "member"),
    [
        (LOCAL, "queue-2", "queue-2-bb22"),
        (LOCAL, "queue-2-bb22", "queue-2-bb22"),
        (LOCAL, "unix:/run/queue-1.sock", "queue-1-aa11"),
        (LOCAL, "2", "queue-2-bb22"),
        (COMPOSE, "queue-2", "queue-3e9c1b77a0d2-bb22"),  # not the one whose id begins with 2
        (COMPOSE, "hopline-queue-1", "queue-2f00d3a8b1c4-aa11"),
        (COMPOSE, "hopline_queue_2", "queue-3e9c1b77a0d2-bb22"),
        (COMPOSE, "queue-12", "queue-3ea17c55fe01-cc33"),
        (COMPOSE, "3e9c1b77a0d2", "queue-3e9c1b77a0d2-bb22"),
        (COMPOSE, "3e9", "queue-3e9c1b77a0d2-bb22"),
        (COMPOSE, "queue-3ea", "queue-3ea17c55fe01-cc33"),
        (COMPOSE, "172.18.0.6", "queue-2f00d3a8b1c4-aa11"),
        (COMPOSE, "172.18.0.6:7000", "queue-2f00d3a8b1c4-aa11"),
        (PODS, "hopline-queue-1", "queue-hopline-queue-1-bb22"),
        (PODS, "queue-0", "queue-hopline-queue-0-aa11"),
        (PODS, "queue-hopline-queue-1", "queue-hopline-queue-1-bb22"),
    ],
)
async def test_names(alive: dict[str, str], to: str, member: str) -> None:
    """A queue process answers to its own name, its container's or pod's, the end or beginning of one, its address."""
    assert await named(to, alive, host_name) == member


@pytest.mark.parametrize("to", ["queue", "3e", "queue-3e", "hopline"])
async def test_ambiguous(to: str) -> None:
    """A name that may be several is an error that lists them, with their containers."""
    with pytest.raises(PreconditionFailed, match=r"queue-3e9c1b77a0d2-bb22 \(hopline_queue_2\), queue-3ea17c55fe01-cc"):
        await named(to, COMPOSE, host_name)


async def test_several_of_one_name() -> None:
    """Processes that were given one name have to be told apart."""
    alive = {"queue-1-aa": "host-a:7003", "queue-1-bb": "host-b:7003"}
    with pytest.raises(PreconditionFailed, match="queue-1-aa, queue-1-bb"):
        await named("queue-1", alive, host_name)
    assert await named("host-b:7003", alive, host_name) == "queue-1-bb"


@pytest.mark.parametrize("to", ["", "queue-3", "store", "9"])
async def test_unknown(to: str) -> None:
    """An unknown name is an error that lists the processes; it says that one that is starting is not among them."""
    with pytest.raises(NotFound, match="queue-1-aa11, queue-2-bb22; one that is starting comes when it is ready"):
        await named(to, LOCAL, host_name)
    with pytest.raises(NotFound, match="there are: none;"):
        await named(to, {}, host_name)


async def test_a_name_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers' names are a help: without them other names count, and the wait for them is short."""
    monkeypatch.setattr(members, "_LOOK_UP", 0.01)

    async def silent(_ip: str) -> str:
        await asyncio.Event().wait()
        return ""

    assert await named("3e9", COMPOSE, silent) == "queue-3e9c1b77a0d2-bb22"
