"""A Celery application as it would be written for RabbitMQ; the broker and a prefix come from the environment."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

from celery import Celery, Task
from kombu import Queue

PREFIX = os.environ["INTEROP_PREFIX"]
RANKED = f"{PREFIX}-ranked"

app = Celery("interop", broker=os.environ["INTEROP_BROKER"], backend="rpc://")
app.conf.update(
    task_default_queue=PREFIX,
    task_queues=[Queue(PREFIX, durable=True), Queue(RANKED, durable=True, max_priority=9)],
    task_acks_late=True,
    task_default_delivery_mode="persistent",
    worker_prefetch_multiplier=2,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"confirm_publish": True},
    control_exchange=f"{PREFIX}-control",
    event_exchange=f"{PREFIX}-events",
    event_queue_prefix=f"{PREFIX}-event",
    worker_enable_remote_control=True,
    result_expires=600,
)


@app.task
def add(x: int, y: int) -> int:
    return x + y


@app.task(bind=True, max_retries=5)
def flaky(self: Task, failures: int) -> int:
    """Fails as often as asked, then gives the number of tries."""
    if self.request.retries < failures:
        raise self.retry(countdown=0.2)
    return self.request.retries + 1


@app.task
def broken() -> None:
    raise ValueError("on purpose")


@app.task
def touch(path: str) -> Any:
    pathlib.Path(path).touch()


@app.task
def note(path: str, text: str) -> None:
    """Writes it down, and takes its time."""
    with pathlib.Path(path).open("a") as file:
        file.write(text)
    time.sleep(0.2)
