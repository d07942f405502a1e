"""Two store processes on a database or a stream: the one that writes is killed, and nothing confirmed is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import elsewhere
from tests.support.cluster_load import Load
from tests.support.stack import Stack, running_stack, wait_until
from tests.support.took import Took

_ROUNDS = 3
_PATIENCE = 60.0  # seconds; how long it takes is put down

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module", params=["postgres", "jetstream"])
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    data = tmp_path_factory.mktemp("stores") / "data"
    with elsewhere.running(request.param) as place:
        settings = {"HOPLINE_STORE_URL": place.url(), "HOPLINE_STORE_PROCESSES": "2"}
        with running_stack(data, settings) as started:
            yield started


def _writer(stack: Stack) -> str:
    """The member that writes, while another stands by; "" where it is not so."""
    does = stack.health().get("does", {})
    return next((member for member in does if does[member] == "writes"), "") if len(does) > 1 else ""


def test_the_writer_is_killed(stack: Stack, name: str) -> None:
    """kill -9 under load, again and again: every confirmed message is delivered, and none again after its ack."""
    load = Load(stack.address, name)
    load.start()
    for turn in range(_ROUNDS):
        load.wait_for_progress()
        wait_until(lambda: _writer(stack), _PATIENCE, "a store process that stands by")
        writer = _writer(stack)
        stack.kill("-".join(writer.split("-")[:2]))
        took = Took(f"until load goes on, round {turn}")
        load.wait_for_progress()
        took.put_down()
        wait_until(lambda former=writer: _writer(stack) not in {"", former}, _PATIENCE, "another store process")
    stack.wait_until_healthy()
    load.finish()
    assert load.confirmed() > 0
    assert load.lost() == []
    assert load.broken_promises() == []
