"""Celery on quorum queues, which leaves delays to the broker: 28 levels of exchanges, and of queues in which messages
expire, the longest after four years.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.interop.test_celery import ROOT, SECONDS
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tests.support.interop_address import BrokerAddress

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def tasks(broker: BrokerAddress, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The application's tasks, while a worker runs."""
    log = tmp_path_factory.mktemp("celery") / "worker.log"
    name = "tests.support.interop_delayed_tasks"
    with pytest.MonkeyPatch.context() as patch, log.open("wb") as output:
        patch.setenv("INTEROP_BROKER", broker.url().replace("%2F", "/"))
        patch.setenv("INTEROP_PREFIX", f"delayed-{uuid.uuid4().hex[:8]}")
        module = importlib.import_module(name)
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            name,
            "worker",
            "--pool=threads",
            "--concurrency=2",
            "-l",
            "INFO",
        ]
        worker = subprocess.Popen(command, cwd=ROOT, env=os.environ.copy(), stdout=output, stderr=output)
        try:
            wait_until(lambda: b" ready." in log.read_bytes(), SECONDS, f"ready worker\n{log.read_text()}")
            yield module
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(SECONDS) == 0, log.read_text()
        finally:
            worker.kill()
            worker.wait()
        with module.app.connection() as connection:
            connection.default_channel.queue_delete(module.PREFIX)
        module.app.close()


def test_countdown(tasks: ModuleType) -> None:
    """A task is not given to the worker before its time; another one, sent after it, is not behind it."""
    began = time.monotonic()
    later = tasks.add.apply_async((2, 3), countdown=3)
    assert tasks.add.delay(1, 1).get(timeout=SECONDS) == 2
    assert later.get(timeout=SECONDS) == 5
    assert time.monotonic() - began >= 2.0


def test_retries(tasks: ModuleType) -> None:
    """Each try waits at the broker."""
    assert tasks.flaky.delay(2).get(timeout=SECONDS) == 3
