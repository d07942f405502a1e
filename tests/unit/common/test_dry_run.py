from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.common.clients.dry_run import DryRunClient
from services.common.dry_run import parse_headers
from services.common.errors import NotFound, SyntaxFault, Unavailable
from tests.support.explaining_router import ExplainingRouter


@pytest.fixture
async def router(tmp_path: Path) -> AsyncIterator[ExplainingRouter]:
    """Of `orders`, EU orders go to `eu`, what is left over to `rest`."""
    router = ExplainingRouter()
    bench = router.bench
    for queue in ("eu", "rest"):
        bench.queue(queue)
    bench.exchange("left", "fanout", internal=True)
    bench.exchange("orders", "topic", arguments={"alternate-exchange": "left"})
    bench.bind("orders", "eu", "eu.#")
    bench.bind("left", "rest")
    bench.bind("amq.headers", "eu", arguments={"x-match": "all", "size": 3, "at": datetime(2026, 1, 1, tzinfo=UTC)})
    await router.start(f"unix:{tmp_path}/router.sock")
    yield router
    await router.stop()


@pytest.fixture
async def client(router: ExplainingRouter, tmp_path: Path) -> AsyncIterator[DryRunClient]:
    async with DryRunClient(f"unix:{tmp_path}/router.sock") as connected:
        yield connected


async def test_by_bindings(client: DryRunClient) -> None:
    """The answer names the queues, and the binding that leads to each."""
    run = await client.route("/", "orders", "eu.new", {})
    assert run.queues == ["eu"]
    [visit] = run.visits
    assert (visit.exchange, visit.type) == ("orders", "topic")
    assert [(hop.to, hop.via, hop.routing_key) for hop in visit.hops] == [("eu", "binding", "eu.#")]


async def test_by_alternate_exchange(client: DryRunClient) -> None:
    """Where nothing matches, the alternate exchange is told, and what it is."""
    run = await client.route("/", "orders", "us.new", {})
    assert run.queues == ["rest"]
    assert [(visit.exchange, visit.internal) for visit in run.visits] == [("orders", False), ("left", True)]
    assert [(hop.to, hop.to_exchange, hop.via) for hop in run.visits[0].hops] == [("left", True, "alternate")]


async def test_by_name(client: DryRunClient) -> None:
    """The default exchange leads to the queue of the key's name."""
    run = await client.route("/", "", "eu", {})
    assert [(hop.to, hop.via) for hop in run.visits[0].hops] == [("eu", "implied")]


async def test_by_further_keys(client: DryRunClient) -> None:
    """The headers CC and BCC lead on, as they would lead the message; what cannot be keys leads nowhere."""
    for header in ('CC:=["eu"]', 'BCC:=["none", 1, "eu"]'):
        assert (await client.route("/", "", "none", parse_headers([header]))).queues == ["eu"]
    assert (await client.route("/", "", "none", parse_headers(["CC=eu"]))).queues == []


async def test_by_headers(client: DryRunClient) -> None:
    """Headers travel with their types, and what JSON lacks is told as it is kept."""
    run = await client.route("/", "amq.headers", "", parse_headers(["size:=3", 'at:={"!time": 1767225600}']))
    assert run.queues == ["eu"]
    assert run.headers == {"size": 3, "at": {"!time": 1767225600}}
    assert run.visits[0].hops[0].arguments == {"x-match": "all", "size": 3, "at": {"!time": 1767225600}}
    assert (await client.route("/", "amq.headers", "", parse_headers(["size=3"]))).queues == []


async def test_not_there(client: DryRunClient) -> None:
    """An exchange or a virtual host that is not there is not found."""
    for virtual_host, exchange in (("/", "none"), ("none", "")):
        with pytest.raises(NotFound, match="none"):
            await client.route(virtual_host, exchange, "k", {})


async def test_nobody_there(tmp_path: Path) -> None:
    """Without a router there is no answer."""
    async with DryRunClient(f"unix:{tmp_path}/none.sock") as client:
        with pytest.raises(Unavailable):
            await client.route("/", "", "q", {})


@pytest.mark.parametrize(
    ("given", "header"),
    [
        ("a=1", ("a", "1")),
        ("a:=1", ("a", 1)),
        ("a:=1.5", ("a", 1.5)),
        ("a:=true", ("a", True)),
        ("a:=null", ("a", None)),
        ('a:="1"', ("a", "1")),
        ("a:=[1, {}]", ("a", [1, {}])),
        ("a=", ("a", "")),
        ("a=b=c", ("a", "b=c")),
        ("a=:=1", ("a", ":=1")),
        ("naïve=ü", ("naïve", "ü")),
    ],
)
def test_headers(given: str, header: tuple[str, Any]) -> None:
    """`name=text` is text, `name:=JSON` is what the JSON says."""
    assert parse_headers([given]) == dict([header])


@pytest.mark.parametrize(
    "given",
    [
        "", "a", "=b", ":=1", "a:=", "a:=b", "a:=1}", "a:=" + "[" * 100_000,
    ],
)  # fmt: skip
def test_no_headers(given: str) -> None:
    """What is neither is refused, and named."""
    with pytest.raises(SyntaxFault, match="'"):
        parse_headers([given])
