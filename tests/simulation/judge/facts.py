"""What several rules ask of a history, worked out once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from tests.simulation.choices import HELD_BACK, NO_LOCAL, NONDESTRUCTIVE, STRATEGY, TIMEOUT
from tests.simulation.history import NEVER, Asked, Consuming, Delivered, Fault, History, Sent
from tests.simulation.judge.words import goes_unused, meant
from tests.simulation.plan import Plan, Step
from tests.simulation.routes import RouteBook, Routes

# After these an owner may be taken for dead, and what is transient be gone.
_DEADLY = {
    "pause", "starve", "cut", "slow", "suspend", "disk_full", "disk_fails", "disk_slow",
}  # fmt: skip
# These keep a gateway from telling a new owner in time what its clients hold: then it may be given to others.
_DEAFENING = {"pause", "starve", "jump_clock"}  # of the one or the other
_BETWEEN = {"cut", "deafen", "slow"}
_AS = {"subscribe": "queue", "unsubscribe": "delete_queue"}
"""What durable links do to their queues."""
_UNHEARD = 1.0  # seconds: that a client is gone is heard of a little later than it knows itself
_UNWRITTEN = 0.5  # seconds in which what came is on disk, and its receiver has heard of it
_ON_ITS_WAY = 0.3  # seconds, where nothing fails
_SHORTLY = 0.5  # seconds in which a gateway that stood still has carried out what came meanwhile
_HEARD_WITHIN = 8.0  # seconds that a gateway stands still: owners wait for ten of their terms
_ROUTED_WITHIN = 30.0  # seconds: then a gateway gives up what no router routes, and tells connected clients …
_MOST_OF_IT = 20.0  # … and it finds one late, or meets one that goes


class Violation(NamedTuple):
    """A promise that was broken; `rule` is the promise."""

    rule: str
    text: str


class Queue(NamedTuple):
    """A queue by name, with what its definition says."""

    host: str
    name: str
    durable: bool
    auto_delete: bool
    own: bool
    arguments: dict[str, object]


class Facts:
    """Indexes over a history."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.plan = plan
        self.history = history
        self.books: dict[str, RouteBook] = {}

    # -------------------------------------------------------------- queues

    @cached_property
    def queues(self) -> dict[tuple[str, str], Queue]:
        found = {}
        for asked in self.history.asked:
            if asked.what in {"queue", "own", "subscribe"}:
                found[asked.host, asked.arguments["queue"]] = _queue(
                    asked.host, asked.arguments, own=asked.what == "own"
                )
        return found

    def routes(self, sent: Sent) -> Routes:
        return self.book(sent.host).of(sent)

    def book(self, host: str) -> RouteBook:
        if host not in self.books:
            self.books[host] = RouteBook(self.history, host, may_fade=self.topology_may_fade)
        return self.books[host]

    def lasting(self, host: str, names: Iterable[str]) -> list[str]:
        """Those queues that do not end by themselves."""
        queues = [self.queues[host, name] for name in sorted(names)]
        return [each.name for each in queues if not (each.own or each.auto_delete or "x-expires" in each.arguments)]

    def stays(self, host: str, name: str) -> bool:
        """Whether a queue was there from its declaration to the end."""
        return bool(self.lasting(host, [name])) and not self.asked("delete_queue", host, name)

    def letters(self, sent: Sent, queue: Queue) -> Routes | None:
        """Where its dead letters go, whenever; None when the queue has no dead-letter exchange."""
        exchange = queue.arguments.get("x-dead-letter-exchange")
        if exchange is None:
            return None
        key = queue.arguments.get("x-dead-letter-routing-key", sent.key)
        if STRATEGY in queue.arguments:  # it waits for its way
            return self.book(sent.host).between(str(exchange), str(key), headers_left(sent, queue), NEVER, NEVER)
        # An attempt to send it on may be any time until the end.
        return self.book(sent.host).between(str(exchange), str(key), headers_left(sent, queue), sent.at, NEVER)

    def letters_may_come(self, queue: Queue) -> bool:
        """Whether any other queue's dead letters may reach this one, in whatever number."""
        return any(
            (routes := self.letters(sent, source)) is not None and queue.name in routes.may
            for source in self.queues.values()
            if source.host == queue.host and source is not queue
            for sent in self.history.sent.values()
            if sent.host == queue.host
        )

    @cached_property
    def deliveries(self) -> dict[tuple[str, str, str], list[Delivered]]:
        found: dict[tuple[str, str, str], list[Delivered]] = defaultdict(list)
        for each in self.taken:
            found[each.host, each.queue, each.id].append(each)
        return dict(found)

    @cached_property
    def taken(self) -> list[Delivered]:
        """Deliveries of what was a consumer's then."""
        return [each for each in self.history.deliveries if not (each.consumer and self.browses(each.consumer))]

    @cached_property
    def shown(self) -> list[Delivered]:
        """Those to browsers, which take nothing."""
        return [each for each in self.history.deliveries if each.consumer and self.browses(each.consumer)]

    def browses(self, consumer: Consuming) -> bool:
        """Whether a consumer sees what waits, and leaves it there."""
        queue = self.queues.get((consumer.host, consumer.queue))
        return consumer.browses or bool(queue and queue.arguments.get(NONDESTRUCTIVE))

    def delivered(self, host: str, queue: str, message: str) -> list[Delivered]:
        return self.deliveries.get((host, queue, message), [])

    def is_on_disk(self, delivered: Delivered) -> bool:
        """Whether it was a persistent message of a durable queue."""
        return self.queues[delivered.host, delivered.queue].durable and self.history.sent[delivered.id].persistent

    def spares(self, consumer: Consuming) -> bool:
        """Whether a consumer is not to have what its own connection publishes."""
        queue = self.queues.get((consumer.host, consumer.queue))
        return consumer.no_local or bool(queue and queue.arguments.get(NO_LOCAL))

    @cached_property
    def any_held_back(self) -> bool:
        """Whether publishers may be held back, so that what else they say is heard late."""
        return any(queue.arguments.items() >= HELD_BACK.items() for queue in self.queues.values())

    def may_be_taken_from(self, delivered: Delivered, until: float) -> bool:
        """Whether its consumer may have kept it for too long by then: it was for others, and is."""
        timeout = self.queues[delivered.host, delivered.queue].arguments.get(TIMEOUT)
        if timeout is None:
            return False
        if self.history.faults or self.any_held_back:
            return True  # what is said may be heard any time later
        return until > delivered.time + int(str(timeout)) / 1000 - _ON_ITS_WAY

    @cached_property
    def consumers(self) -> dict[tuple[str, str], list[Consuming]]:
        found: dict[tuple[str, str], list[Consuming]] = defaultdict(list)
        for each in self.history.consumers:
            found[each.host, each.queue].append(each)
        return dict(found)

    def asked(self, what: str, host: str, queue: str) -> list[Asked]:
        return self._by_queue.get((what, host, queue), [])

    @cached_property
    def _by_queue(self) -> dict[tuple[str, str, str], list[Asked]]:
        found: dict[tuple[str, str, str], list[Asked]] = defaultdict(list)
        for each in self.history.asked:
            if "queue" in each.arguments:
                found[_AS.get(each.what, each.what), each.host, each.arguments["queue"]].append(each)
        return dict(found)

    @cached_property
    def copies(self) -> dict[tuple[str, str], int]:
        """How many messages each queue may have been sent, dead letters of others not counted."""
        found: dict[tuple[str, str], int] = defaultdict(int)
        for sent in self.history.sent.values():
            for name in self.routes(sent).may:
                found[sent.host, name] += 1
        return found

    def gone_unseen(self, sent: Sent, queue: Queue, until: int) -> bool:
        """Whether a message may have been on its way to a client that did not stay."""
        at, since = (queue.host, queue.name), sent.time - _UNHEARD
        consumers = (each for each in self.consumers.get(at, ()) if each.asked < until)
        ended = any(self._may_be_over(each, until) and self.history.time_of(_end(each)) > since for each in consumers)
        return ended or any(each.asked < until and each.outcome != "ok" for each in self.asked("get", *at))

    def _may_be_over(self, consumer: Consuming, at: int) -> bool:
        """Whether a consumer may have ended by then: of an end by the broker its client hears later."""
        end, time_of = _end(consumer), self.history.time_of
        heard_late = not consumer.channel.held_until and time_of(end) - _UNHEARD < time_of(at)
        return end < at or heard_late

    # -------------------------------------------------------------- faults

    def faults(self, *kinds: str, of: str = "") -> list[Fault]:
        """Those of some kinds; `of` is how a name that they are about begins."""
        return [
            fault
            for fault in self.history.faults
            if fault.what in kinds and (not of or any(name.startswith(of) for name in fault.names))
        ]

    @cached_property
    def owners_may_die(self) -> bool:
        """Whether an owner may have gone without handing over: transient messages go with it."""
        killed = self.faults("kill", of="queue-") or self.faults("kill", of="store")
        # What is handed over needs room, and a process that is told to stop does not wait for room for ever.
        unwritten = self.faults("disk_low") and self.faults("stop")
        return bool(killed or unwritten or self.faults(*_DEADLY))

    def owners_died_at_once(self, since: float) -> bool:
        """Whether several died in the moment after that: what had gone from one to another was on no disk yet."""
        killed = [*self.faults("kill", of="queue-"), *self.faults("kill", of="store")]
        names = {name for fault in killed if abs(fault.time - since) <= _UNWRITTEN for name in fault.names}
        return len(names) > 1

    def may_be_deaf(self, gateway: str, *, late: bool = False) -> bool:
        """Whether what its clients hold may have been given to others, because a new owner did not hear it in time.

        `late`: that it stood still itself is no reason.
        """
        faults = (each for each in self.history.faults if not (late and each.what == "pause" and gateway in each.names))
        return any(_deafens(fault, gateway) for fault in faults)

    def passed_on_late(self, delivered: Delivered, after: Delivered) -> bool:
        """Whether its gateway stood still when `after` came, and passed on what it had been sent before that."""
        gateway = delivered.channel.connection.gateway
        return any(
            fault.what == "pause"
            and gateway in fault.names
            and fault.time <= after.time <= fault.time + fault.seconds
            and delivered.time <= fault.time + fault.seconds + _SHORTLY
            for fault in self.history.faults
        )

    @cached_property
    def any_may_be_deaf(self) -> bool:
        """Whether that may be so of any gateway that clients are connected to."""
        return any(self.may_be_deaf(gateway) for gateway in {each.gateway for each in self.history.connections})

    def troubled(self, gateway: str) -> bool:
        """Whether a gateway did not simply live on."""
        return any(gateway in fault.names and fault.what != "tear" for fault in self.history.faults)

    def was_heard_late(self, gateway: str) -> bool:
        """Whether its only trouble is that it stood still, and for no longer than owners wait to hear what it has."""
        faults = [fault for fault in self.history.faults if gateway in fault.names and fault.what != "tear"]
        still = sum(fault.seconds for fault in faults if fault.what == "pause")
        return all(fault.what == "pause" for fault in faults) and still < _HEARD_WITHIN

    def may_stay_unrouted(self, sent: Sent) -> bool:
        """Whether no router may have been there for it in all the time that a gateway tries.

        A router without a store cannot begin.
        """
        until = sent.time + _ROUTED_WITHIN
        return any(min(up, until) - max(down, sent.time) > _MOST_OF_IT for down, up in self._without_router)

    @cached_property
    def _without_router(self) -> list[tuple[float, float]]:
        """When processes were down that routing needs."""
        return [
            (fault.time, self._up_again(fault))
            for fault in [*self.faults("kill", "stop", of="store"), *self.faults("kill", "stop", of="router")]
        ]

    def _up_again(self, down: Fault) -> float:
        ups = (each.time for each in self.faults("start_again") if each.names == down.names and each.time > down.time)
        return min(ups, default=float("inf"))

    @cached_property
    def clocks_may_differ(self) -> bool:
        """Whether a process may have begun with another wall clock than others have: those follow a jump slowly."""
        return bool(self.faults("jump_clock") and self.faults("kill", "stop", "add_queue_process"))

    @cached_property
    def may_wait_longer(self) -> bool:
        """Whether what waits for its time may still do so when queues are emptied, by a clock that was set."""
        delayed = any(sent.due is not None for sent in self.history.sent.values())
        return delayed and bool(self.faults("jump_clock"))

    @cached_property
    def topology_may_fade(self) -> bool:
        """Whether what is not durable of the topology may be gone: it is in the memory of routers and store."""
        return bool(
            self.faults("kill", "stop", of="store")
            and (self.faults("suspend") or self.faults("kill", "stop", "pause", "cut", of="router"))
        )


def _end(consumer: Consuming) -> int:
    """When its client asked for its end in any way, or saw it."""
    channel = consumer.channel
    ends = (consumer.ending, channel.leaving, channel.ending, channel.connection.ending)
    return min(NEVER if at is None else at for at in ends)


def headers_left(sent: Sent, letter_of: Queue | None = None) -> dict[str, Any]:
    """Those that its receivers see; of a dead letter of a queue those that go on with it."""
    hidden = {"BCC"}
    if letter_of and "x-dead-letter-routing-key" in letter_of.arguments:
        hidden.add("CC")
    return {name: value for name, value in sent.headers.items() if name not in hidden}


def _deafens(fault: Fault, gateway: str) -> bool:
    names = fault.names
    if fault.what in _DEAFENING:
        return gateway in names or any(name.startswith("queue-") for name in names)
    return fault.what == "suspend" or (fault.what in _BETWEEN and gateway in names)


def _queue(host: str, step: Step, *, own: bool) -> Queue:
    arguments = step.get("arguments") or {}
    return Queue(
        host, step["queue"], step.get("durable", not own), step.get("auto_delete", False) or goes_unused(arguments),
        own, meant(arguments),
    )  # fmt: skip


def told(sent: Sent) -> str:
    """A message in words."""
    kind = "persistent" if sent.persistent else "transient"
    where = f"to {sent.exchange or 'the default exchange'} with key {sent.key!r}"
    return f"{kind} message {sent.id} (at {sent.time:.3f} s, {where})"


def first(violations: Iterable[Violation], most: int = 30) -> list[Violation]:
    """Enough of them to understand."""
    found = []
    for violation in violations:
        found.append(violation)
        if len(found) == most:
            break
    return found
