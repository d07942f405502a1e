"""Browsers see what waits, once, and take none: what they see counts for nothing, which the other rules hold to."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulation.choices import CHOICES, GIVES_ALL, HOLDS, NONDESTRUCTIVE
from tests.simulation.history import NEVER, Consuming, Sent
from tests.simulation.judge.facts import Facts, Queue, Violation, told

_SHOWS_ALL = GIVES_ALL - {HOLDS} | {NONDESTRUCTIVE}
_PATIENCE = 3.0  # seconds in which it is shown


def again(facts: Facts) -> Iterator[Violation]:
    """A browser sees a message once, as long as nothing fails: a next owner shows it all again."""
    if facts.history.faults:
        return
    seen = set()
    for each in facts.shown:
        key = (id(each.consumer), each.id, each.deaths)
        sent = facts.history.sent.get(each.id)
        if sent and each.consumer and key in seen:
            yield Violation("a browser sees a message once", f"{told(sent)} came twice to {each.consumer.tag}")
        seen.add(key)


def unseen(facts: Facts) -> Iterator[Violation]:
    """Where nothing fails, a browser without a limit sees what waits in a queue while it is there."""
    if facts.history.faults:
        return
    shown = {(id(each.consumer), each.id) for each in facts.shown}
    for at, consumers in facts.consumers.items():
        queue = facts.queues.get(at)
        for browser in consumers:
            if queue is None or not _is_sure(facts, browser) or queue.arguments.keys() - _SHOWS_ALL:
                continue
            for sent in _waiting(facts, queue, browser):
                if (id(browser), sent.id) not in shown and (not browser.selector or CHOICES[browser.selector](sent)):
                    yield Violation("a browser sees what waits", f"{told(sent)} was not shown to {browser.tag}")


def _is_sure(facts: Facts, browser: Consuming) -> bool:
    """Whether it has seen all that there was for it before its end."""
    return (
        facts.browses(browser)
        and browser.attached is not None
        and not (browser.channel.limited or browser.no_local or browser.replay is not None)
    )


def _waiting(facts: Facts, queue: Queue, browser: Consuming) -> Iterator[Sent]:
    """What was in the queue, with nobody, for some time while the browser was there."""
    time_of = facts.history.time_of
    end = min(NEVER if browser.ending is None else browser.ending, browser.channel.held_until)
    if facts.asked("purge", queue.host, queue.name) or facts.asked("get", queue.host, queue.name):
        return
    for sent in facts.history.sent.values():
        deliveries = facts.delivered(queue.host, queue.name, sent.id)
        if sent.host != queue.host or sent.confirmed is None or sent.ttl is not None or not deliveries:
            continue
        since = max(time_of(browser.attached or NEVER), time_of(sent.confirmed))
        until = min(deliveries[0].time, time_of(end))
        if since + _PATIENCE < until and queue.name in facts.routes(sent).must and not deliveries[0].redelivered:
            yield sent
