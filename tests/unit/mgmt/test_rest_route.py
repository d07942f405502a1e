from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.common.config import Settings
from services.common.dry_run import DryRun
from tests.support.explaining_router import ExplainingRouter
from tests.support.fake_store import FakeStore
from tests.support.rest import Get


@pytest.fixture
async def router(settings: Settings, store: FakeStore) -> AsyncIterator[ExplainingRouter]:
    """`q` gets from `amq.headers` what has a size of 3."""
    router = ExplainingRouter()
    router.bench.queue("q")
    router.bench.bind("amq.headers", "q", arguments={"x-match": "all", "size": 3})
    await router.start(settings.address_of("router"))
    store.join("router", settings.address_of("router"))
    yield router
    await router.stop()


async def test_dry_run(get: Get, router: ExplainingRouter) -> None:
    """GET /api/route answers with the queues and the bindings on the way."""
    status, body, _ = await get("/api/route?exchange=amq.headers&header=size%3A%3D3&header=colour=red")
    run = DryRun.model_validate(body)
    assert (status, run.queues, run.headers) == (200, ["q"], {"size": 3, "colour": "red"})
    assert [hop.arguments for hop in run.visits[0].hops] == [{"x-match": "all", "size": 3}]
    _, body, _ = await get("/api/route?key=q")
    assert body["queues"] == ["q"]


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ("exchange=none", 404, "NotFound"),
        ("vhost=none", 404, "NotFound"),
        ("header=size", 400, "SyntaxFault"),
        ("header=size%3A%3D%22%5Cud800%22", 400, "SyntaxFault"),
        (f"key={'k' * 256}", 400, "SyntaxFault"),
        ("&".join(["header=a=b"] * 101), 400, "SyntaxFault"),
    ],
)
async def test_bad_questions(get: Get, router: ExplainingRouter, query: str, status: int, error: str) -> None:
    """What is not there, or cannot be asked, is told as such."""
    answered, body, _ = await get(f"/api/route?{query}")
    assert (answered, body["error"]) == (status, error)


async def test_without_a_router(get: Get) -> None:
    """Without a router the answer is that there is none at the moment."""
    status, body, _ = await get("/api/route?key=q")
    assert (status, body["error"]) == (503, "Unavailable")
    assert (await get("/api/route?key=q", None))[0] == 401
