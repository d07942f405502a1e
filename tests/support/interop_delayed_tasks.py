"""A Celery application on quorum queues: it has the broker delay tasks, level by level of exchanges and queues."""

from __future__ import annotations

import os
from typing import Final

from celery import Celery, Task
from kombu import Exchange, Queue

PREFIX: Final = os.environ["INTEROP_PREFIX"]

app = Celery("delayed", broker=os.environ["INTEROP_BROKER"], backend="rpc://")
app.conf.update(
    task_default_queue=PREFIX,
    task_default_queue_type="quorum",
    task_default_exchange=PREFIX,
    task_default_exchange_type="topic",
    task_default_routing_key=PREFIX,
    task_queues=[
        Queue(PREFIX, Exchange(PREFIX, type="topic"), routing_key=PREFIX, queue_arguments={"x-queue-type": "quorum"}),
    ],
    broker_native_delayed_delivery_queue_type="quorum",
    broker_connection_retry_on_startup=True,
    broker_transport_options={"confirm_publish": True},
    worker_enable_remote_control=False,
    task_acks_late=True,
    result_expires=600,
)


@app.task
def add(one: int, two: int) -> int:
    return one + two


@app.task(bind=True, max_retries=5)
def flaky(self: Task, failures: int) -> int:
    """Fails as often as asked, then gives the number of tries."""
    if self.request.retries < failures:
        raise self.retry(countdown=1)
    return self.request.retries + 1
