"""Histories written by hand, for the judge: a few calls say what clients saw."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.simulation.history import (
    NEVER,
    Asked,
    Connected,
    Consuming,
    Delivered,
    Fault,
    History,
    Opened,
    Sent,
    Transaction,
)  # fmt: skip
from tests.simulation.judge import Violation, judge
from tests.simulation.plan import Plan


class Written:
    """One virtual host with a client on each of two gateways, `one` and `two`, with a channel each."""

    def __init__(self) -> None:
        self.history = History(lambda: self.time)
        self.time = 0.0
        self.plan = Plan(1)
        self.one = self.channel("one", "gateway-1")
        self.two = self.channel("two", "gateway-2")
        self._tags = 0

    def channel(self, client: str, gateway: str, mode: str = "confirm") -> Opened:
        """On a connection of its own, which ends cleanly after all."""
        tick = self.history.tick
        connected = Connected(len(self.history.connections), client, gateway, "/", tick(), NEVER, NEVER, "clean")
        self.history.connections.append(connected)
        opened = Opened(len(self.history.channels), mode, connected)
        self.history.channels.append(opened)
        return opened

    # -------------------------------------------------------------- topology

    def change(self, do: str, *, answered: bool = True, attempts: int = 0, **arguments: Any) -> Asked:
        """Asked for, and answered at once."""
        tick = self.history.tick
        asked = Asked(do, "/", {"do": do, **arguments}, self.one, tick(), attempts=attempts)
        if answered:
            asked.answered, asked.outcome = tick(), "ok"
        self.history.asked.append(asked)
        return asked

    def queue(self, name: str, *, durable: bool = True, **arguments: Any) -> Asked:
        table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        return self.change("queue", queue=name, durable=durable, arguments=table)

    def fault(self, what: str, *names: str, seconds: float = 0.0) -> None:
        self.history.faults.append(Fault(what, names, self.history.tick(), self.time, seconds))

    # -------------------------------------------------------------- messages

    def publish(
        self, name: str, key: str, *, confirmed: bool = True, channel: Opened | None = None, **more: Any
    ) -> Sent:
        """Persistent, to the default exchange, unless it is said otherwise."""
        channel, tick = channel or self.one, self.history.tick
        facts: dict[str, Any] = {
            "exchange": "", "headers": {}, "persistent": True, "priority": 0, "ttl": None, "mandatory": False,
            "immediate": False, **more,
        }  # fmt: skip
        number = 1 + sum(each.channel is channel for each in self.history.sent.values())
        sent = Sent(
            id=name, host="/", key=key, size=20, channel=channel, number=number, at=tick(), time=self.time, **facts
        )
        if confirmed:
            sent.confirmed = sent.bound = tick()
        self.history.sent[name] = sent
        return sent

    def commit(self, *sent: Sent, outcome: str = "committed", settled: tuple[Delivered, ...] = ()) -> Transaction:
        """Has messages and settlements in a transaction."""
        transaction = Transaction(
            self.one, outcome, self.history.tick(), self.history.tick(), list(sent), list(settled)
        )
        for each in (*sent, *settled):
            each.transaction = transaction
        self.history.transactions.append(transaction)
        return transaction

    def consumer(self, queue: str, channel: Opened | None = None, **more: Any) -> Consuming:
        self._tags += 1
        consuming = Consuming(
            "/", queue, f"t{self._tags}", channel or self.two, more.pop("no_ack", False), more.pop("exclusive", False),
            self.history.tick(), self.history.tick(), **more,
        )  # fmt: skip
        self.history.consumers.append(consuming)
        return consuming

    def deliver(
        self, sent: Sent | str, queue: str, settled_as: str = "", *, known: bool = True, **more: Any
    ) -> Delivered:
        """To client two; settled at once, and that is known, unless it is said otherwise."""
        self._tags += 1
        sent = sent if isinstance(sent, Sent) else self.history.sent[sent]
        deaths = more.pop("deaths", ())
        headers = {**sent.headers, **({"x-death": []} if deaths else {})}
        properties = SimpleNamespace(
            message_id=sent.id, delivery_mode=2 if sent.persistent else 1, priority=sent.priority or None,
            expiration=None if sent.ttl is None or deaths else str(sent.ttl), headers=headers or None,
        )  # fmt: skip
        facts: dict[str, Any] = {
            "id": sent.id, "host": "/", "queue": queue, "channel": self.two, "consumer": None, "tag": self._tags,
            "redelivered": False, "exchange": sent.exchange, "key": sent.key, "properties": properties, "intact": True,
            "draining": False, "deaths": deaths, **more,
        }  # fmt: skip
        delivered = Delivered(at=self.history.tick(), time=self.time, **facts)
        if settled_as:
            delivered.settled_as, delivered.settled = settled_as, self.history.tick()
            delivered.known = self.history.tick() if known else None
        self.history.deliveries.append(delivered)
        return delivered

    def drain(self, sent: Sent, queue: str, **more: Any) -> Delivered:
        """Found when the queue was emptied."""
        return self.deliver(sent, queue, "ack", draining=True, **more)

    # -------------------------------------------------------------- the verdict

    def violations(self) -> list[Violation]:
        self.history.clock_at_end = self.time
        return judge(self.plan, self.history)

    def broken(self) -> set[str]:
        """The promises that were."""
        return {violation.rule for violation in self.violations()}
