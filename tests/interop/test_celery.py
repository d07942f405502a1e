"""A Celery worker in a process of its own runs tasks, with retries, results and remote control."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from celery import group

from tests.support.stack import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tests.support.interop_address import BrokerAddress

SECONDS = 30
ROOT = Path(__file__).parents[2]
# Celery and its libraries leave sockets of closed pools to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def tasks(broker: BrokerAddress) -> Iterator[ModuleType]:
    """The application's tasks, as their sender imports them."""
    prefix = f"celery-{uuid.uuid4().hex[:8]}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTEROP_BROKER", broker.url().replace("%2F", "/"))
        patch.setenv("INTEROP_PREFIX", prefix)
        module = importlib.import_module("tests.support.interop_tasks")
        yield module
        with module.app.connection() as connection:
            for queue in (prefix, module.RANKED):
                connection.default_channel.queue_delete(queue)
        module.app.close()


@pytest.fixture(scope="module")
def worker(tasks: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A running worker with two threads."""
    log = tmp_path_factory.mktemp("celery") / "worker.log"
    command = [sys.executable, "-m", "celery", "-A", "tests.support.interop_tasks", "worker"]
    options = ["--pool=threads", "--concurrency=2", "--loglevel=INFO", "-E"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *options], cwd=ROOT, env=os.environ.copy(), stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_until(lambda: b" ready." in log.read_bytes(), SECONDS, f"ready worker\n{log.read_text()}")
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("worker")
def test_results(tasks: ModuleType) -> None:
    """Results come back over the rpc backend."""
    assert tasks.add.delay(2, 3).get(timeout=SECONDS) == 5


@pytest.mark.usefixtures("worker")
def test_group(tasks: ModuleType) -> None:
    """A group of tasks gives all its results in order."""
    results = group(tasks.add.s(number, number) for number in range(100)).apply_async()
    assert results.get(timeout=SECONDS) == [2 * number for number in range(100)]


@pytest.mark.usefixtures("worker")
def test_retries(tasks: ModuleType) -> None:
    """A task that fails twice and asks for retries succeeds at the third try."""
    assert tasks.flaky.delay(2).get(timeout=SECONDS) == 3


@pytest.mark.usefixtures("worker")
def test_failure(tasks: ModuleType) -> None:
    """An exception in a task arrives where its result is asked for."""
    with pytest.raises(ValueError, match="on purpose"):
        tasks.broken.delay().get(timeout=SECONDS)


@pytest.mark.usefixtures("worker")
def test_countdown(tasks: ModuleType, tmp_path: Path) -> None:
    """A task with a countdown runs, later; a result is not needed."""
    path = tmp_path / "touched"
    sent = time.time()
    tasks.touch.apply_async((str(path),), countdown=1, ignore_result=True)
    wait_until(path.exists, SECONDS, "touched file")
    assert path.stat().st_mtime - sent > 0.9


@pytest.mark.usefixtures("worker")
def test_priorities(tasks: ModuleType, tmp_path: Path) -> None:
    """Of tasks that wait, the two threads take those that matter most first."""
    control, path = tasks.app.control, tmp_path / "order"
    control.cancel_consumer(tasks.RANKED, reply=True, timeout=5, limit=1)
    for priority in (1, 2, 8, 9):
        tasks.note.apply_async((str(path), f"{priority}"), queue=tasks.RANKED, priority=priority)
    control.add_consumer(tasks.RANKED, reply=True, timeout=5, limit=1)
    wait_until(lambda: path.exists() and len(path.read_text()) == 4, SECONDS, "four tasks")
    found = path.read_text()
    assert (set(found[:2]), set(found[2:])) == (set("89"), set("12"))


@pytest.mark.usefixtures("worker")
def test_remote_control(tasks: ModuleType) -> None:
    """A broadcast to all workers (fanout exchange, reply queue) is answered."""
    replies = tasks.app.control.ping(timeout=5)
    assert [list(reply.values()) for reply in replies] == [[{"ok": "pong"}]]
