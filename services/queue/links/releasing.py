"""Requeues the deliveries of a holder that is gone: many at a time in each turn of the event loop, not all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from services.common.containment import by_itself
from services.queue.host import Host
from services.queue.machine import turn
from services.queue.machine.queue import Queue


def release_held_by(host: Host, queue: Queue, holder: object) -> None:
    """What `holder` has of a queue is dispatched to other consumers, once all of it is back in its place."""
    if uids := queue.giving_back.release_held_by(holder, host.now()):
        host.tasks.start(_release(host, queue, holder, uids), f"deliveries of {queue.options.name} come back")


def release_in_turns(host: Host, queues: Iterable[Queue], holder: object) -> None:
    """The same of several, as many of them in each turn as are not too much together."""
    for queue in queues:
        host.turns.do(queue.giving_back.looks, partial(_release_of_one, host, queue, holder))


def _release_of_one(host: Host, queue: Queue, holder: object) -> None:
    if host.registry.settling(queue.options.queue_id) is queue:
        release_held_by(host, queue, holder)


async def _release(host: Host, queue: Queue, holder: object, uids: list[int]) -> None:
    at_once = turn.AT_ONCE if queue.seeking.by_arrival else turn.SCATTERED  # each has to find its place, then
    its = list[int]()
    for first in range(0, len(uids), turn.SEEN):  # others' among them are only looked at
        await asyncio.sleep(0)
        its += queue.giving_back.had(uids[first : first + turn.SEEN], holder)
    for first in range(0, len(its) or 1, at_once):
        await asyncio.sleep(0)
        await host.until_certain()
        if host.registry.settling(queue.options.queue_id) is not queue:
            return  # the next owner reads from the journal which gateway had it, or the queue is deleted
        end = first + at_once
        release = partial(queue.giving_back.release, its[first:end], holder, host.now(), last=end >= len(its))
        by_itself("giving deliveries back", release)
        host.check_full()
