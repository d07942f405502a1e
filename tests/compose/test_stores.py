"""The store on a database or a stream of compose, with a store process that stands by: each of them dies under load.

HOPLINE_TEST_STORES_ROUNDS says how often all that there is befalls them; without it, the worst of PostgreSQL, once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.compose_stack import ComposeStack, running_compose_stack
from tests.support.mixed_load import MixedLoad
from tests.support.stack import wait_until
from tests.support.store_disturbances import BRIEFLY, SECONDS, SERVERS, THOROUGHLY, stands_by
from tests.support.took import Took

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDS = int(os.environ.get("HOPLINE_TEST_STORES_ROUNDS", "0"))
TWO = {"HOPLINE_STORE_PROCESSES": "2"}
URL = {"HOPLINE_STORE_URL": f"nats://{','.join(SERVERS)}"}

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(400 + 600 * ROUNDS),
]


def _stack(place: str) -> ComposeStack:
    if place == "postgres":
        return ComposeStack("deploy/postgres/compose.yaml", **TWO)
    return ComposeStack(profile="jetstream", **TWO, **URL)


@pytest.fixture(params=["postgres", "jetstream"] if ROUNDS else ["postgres"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stack(place: str) -> Iterator[ComposeStack]:
    with running_compose_stack(_stack(place), "postgres") as started:
        yield started


def test_what_befalls_a_store(stack: ComposeStack, place: str, name: str) -> None:
    """Nothing confirmed is lost, nothing comes twice, of traffic that fans out and alternates too, and no client loses
    its connection.
    """
    load = MixedLoad(stack.address, name)
    load.start()
    load.wait_for_progress()
    for disturbance in THOROUGHLY[place] * ROUNDS or BRIEFLY[place]:
        took = Took(disturbance.what)
        disturbance.do(stack, load)
        took.put_down()
    load.finish()
    wait_until(lambda: stands_by(stack), SECONDS, "store process that stands by")
    print(f"{place}: {load.confirmed()} confirmed, {len(load.lost())} lost")  # noqa: T201 - for whoever looks
    assert load.confirmed()
    assert load.lost() == []
    assert load.broken_promises() == []
    assert load.reconnects() == 0
    assert load.doubled() == []
    stack.stop()
    assert stack.ended_by_force() == []
