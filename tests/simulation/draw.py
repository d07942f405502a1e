"""A plan from a seed. What occurs at all, and how often, is drawn for each history: uniform load finds little.

Half of the weight lies where messages were lost: persistent, confirmed, to several queues of a partition, while owners
change.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.simulation.choices import BOUND, CHOICES, COLOURS, GROUPS, SELECTOR
from tests.simulation.draw_faults import draw_faults
from tests.simulation.draw_features import Features
from tests.simulation.draw_links import Like, Links, has_links
from tests.simulation.draw_subscriptions import subscribed
from tests.simulation.draw_taken_back import taken_back
from tests.simulation.draw_topology import TO_MANY, Drawn, draw_topology
from tests.simulation.draw_transactions import transacted
from tests.simulation.plan import Plan, Step

HOST = "/"
_TWO_HOSTS = 0.1  # share of histories: queues of the same names in another virtual host
_CHOSEN = 0.2  # share of histories with consumers that select what they want
_GROUPED = 0.2  # share of their queues with message groups, …
_SELECTED = 0.3  # … and of their bindings with a selector
_COPIED = 0.2  # share of histories with messages that go by more keys than one, and of their publishes
# Shares of histories that are of kinds that came later: each is drawn apart, so that the other seeds are as they were.
_LATER = {"purges": 0.03, "late": 0.04, "mistakes": 0.03, "flips": 0.03}
_SHORT = 0.08  # share of histories whose queues do little in one turn
_SILENT = 0.12  # share of histories in which machines die with their processes, half of the times
_APART = 0.1  # of the histories: configuration is kept in another place than messages
_SHARES = 0.15  # share of the histories in which bodies are in memory that gateways share with queue processes
_COPIES = 600  # of messages, in queues, that a history may come to

# What each step weighs, by the kind of history.
_COMMON = {
    "publish": 40, "consume": 8, "cancel": 2, "settle": 8, "get": 6, "count": 1, "confirms": 2, "close": 1, "abort": 1,
    "close_channel": 1,
}  # fmt: skip
KINDS: dict[str, tuple[int, dict[str, int]]] = {
    "fan-out": (35, {"publish": 60, "consume": 6, "settle": 4, "get": 2, "grow": 1}),
    "bulk": (10, {"publish": 60, "consume": 4, "settle": 2}),
    "mixed": (20, {**_COMMON, "purge": 1, "recover": 1, "own": 1, "touch": 1, "grow": 2}),
    "transactions": (12, {**_COMMON, "commit": 18, "rollback": 4, "grow": 2}),
    "consumers": (10, {**_COMMON, "consume": 16, "settle": 20, "cancel": 6, "abort": 3, "recover": 2}),
    "topology": (8, {**_COMMON, "own": 3, "change": 10, "grow": 5, "purge": 1}),
    "letters": (5, {**_COMMON, "settle": 14, "consume": 12}),
    "orderly": (5, {**_COMMON, "consume": 14, "get": 12}),
    "leases": (5, {"publish": 50, "consume": 10, "settle": 6, "grow": 1}),
    # Only when they are asked for, of what others have besides: clients of 1.0 with the most to do, and many features.
    "features": (0, {**_COMMON, "purge": 1, "recover": 1, "grow": 1}),
    "links": (0, {**_COMMON, "publish": 50, "consume": 4, "get": 2, "purge": 1, "grow": 1}),
    # As often as _LATER says.
    "purges": (0, {"publish": 50, "purge": 15, "count": 5}),
    "late": (0, {"publish": 60, "consume": 5, "settle": 4, "get": 4, "purge": 3, "count": 2}),
    "flips": (0, {"publish": 50, "flip": 15, "settle": 3, "confirms": 1}),
    "mistakes": (0, {"publish": 40, "mistake": 12, "consume": 3, "settle": 3, "count": 2, "confirms": 2}),
}


def draw(seed: int, steps: int = 200, kind: str = "") -> Plan:
    """The same plan for the same seed, of any kind or of this one."""
    rng = Random(f"plan {seed}")
    any_kind = rng.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
    later = (name for name, share in _LATER.items() if Random(f"{name} {seed}").random() < share)
    kind = kind or next(later, any_kind)
    shape = _shape(rng, kind) | _turn(seed, kind) | _silent(seed) | _apart(seed) | _shares(seed)
    hosts = [HOST, "other"] if Random(f"hosts {seed}").random() < _TWO_HOSTS else [HOST]
    clients: list[dict[str, Any]] = []
    topology: list[Step] = []
    done: list[Step] = []
    loads: list[_Load] = []
    linked: list[Links] = []
    more_clients: list[dict[str, Any]] = []
    more: list[Step] = []
    seconds = 0.0
    steps = rng.choice([steps // 4, steps // 2, steps, steps])
    for host in hosts:
        drawn = draw_topology(rng, kind)
        mine = [
            {"name": f"c{number + len(clients)}", "host": host, "gateway": number % shape["gateways"]}
            for number in range(rng.choice([2, 3, 3, 4, 6]))
        ]
        load = _Load(rng, kind, drawn, [client["name"] for client in mine], f"{seed} {host}")
        loads.append(load)
        load.group()
        load.features.queues(drawn.steps)
        load.select()
        done += load.steps(steps // len(hosts))
        topology += [{**step, "host": host} for step in drawn.steps]
        clients += mine
        seconds = max(seconds, load.seconds)
        if kind == "links" or has_links(f"{seed} {host}"):
            first = sum(len(each.clients) for each in linked)
            links = Links(f"{seed} {host}", drawn, load.like(), first, shape["gateways"])
            linked.append(links)
            more_clients += [{**client, "host": host} for client in links.clients]
            its = links.steps(steps // len(hosts) // (1 if kind == "links" else 2))
            names = [client["name"] for client in links.clients]
            its = subscribed(f"{seed} {host}", its, names, drawn, links.settling, chosen=load.chosen)
            more += transacted(f"{seed} {host}", its, drawn.queues)
            taken_back(f"{seed} {host}", host, topology, more_clients, more)
    faults = draw_faults(rng, shape, [client["name"] for client in clients], seconds, kind)
    for each in (*linked, *(load.features for load in loads)) if faults else ():
        faults += each.faults(seconds, shape)
    faults.sort(key=lambda fault: fault["at"])
    return Plan(seed, shape, topology, clients + more_clients, done + more, faults)


def _shape(rng: Random, kind: str) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "gateways": rng.choice([1, 2, 2, 3]),
        "routers": rng.choice([1, 2]),
        "queue_processes": 3 if kind == "leases" else rng.choice([2, 2, 3]),
        "partitions": rng.choice([2, 3, 4, 6] if kind in TO_MANY else [4, 6, 8]),
    }
    if rng.random() < 0.2:
        shape["spikes"] = 0.1
    if rng.random() < 0.4:
        shape["commit"] = rng.choice([0.02, 0.1])
    if rng.random() < 0.1:
        shape["splits"] = 0.5
    return shape


def _turn(seed: int, kind: str) -> dict[str, Any]:
    """In some histories a queue does little in one turn."""
    rng = Random(f"turn {seed}")
    return {"turn": rng.choice([2, 5, 20])} if rng.random() < (0.3 if kind == "features" else _SHORT) else {}


def _silent(seed: int) -> dict[str, Any]:
    return {"silent": 0.5} if Random(f"silent {seed}").random() < _SILENT else {}


def _apart(seed: int) -> dict[str, Any]:
    return {"apart": True} if Random(f"apart {seed}").random() < _APART else {}


def _shares(seed: int) -> dict[str, Any]:
    return {"shares": True} if Random(f"shares {seed}").random() < _SHARES else {}


class _Load:
    """Steps that fit the topology."""

    def __init__(self, rng: Random, kind: str, drawn: Drawn, clients: list[str], seed: str) -> None:
        self.rng, self.kind, self.drawn, self.clients, self.seed = rng, kind, drawn, clients, seed
        # Apart, so that all else of a seed is as it was before there were any.
        self.copies, self.choices = Random(f"copies {seed}"), Random(f"choices {seed}")
        self.features = Features(seed, kind)
        self.copied, self.chosen = self.copies.random() < _COPIED, self.choices.random() < _CHOSEN
        self.seconds = 0.0
        self.weights = {name: weight for name, weight in KINDS[kind][1].items() if rng.random() < 0.85}
        self.weights["publish"] = KINDS[kind][1]["publish"]
        self.pause = rng.choice([0.02, 0.1, 0.3])  # seconds between steps of one client, in the mean
        self.modes = rng.choice([["confirm"], ["confirm", "plain"], ["confirm", "confirm", "tx"], ["plain"]])
        if kind in TO_MANY:
            self.modes = ["confirm"]
        if kind == "transactions":
            self.modes = ["tx", "tx", "confirm"]
        self.persistent = 1.0 if kind in TO_MANY else rng.choice([1.0, 1.0, 0.5, 0.0])
        self.most = 1  # messages of one publish; `steps` knows better
        self.size = rng.choice([12, 40, 300]) if kind != "bulk" else rng.choice([2_000, 20_000, 60_000])
        self.options = {name: rng.random() < 0.25 for name in ("mandatory", "immediate", "ttl", "priority", "no_ack")}
        self.immediate = 0.1  # of what may be
        self.settling = rng.choice([{"ack": 100}, {"ack": 70, "requeue": 10, "reject": 5}, {"ack": 50}, {}])
        if kind == "flips":
            self.modes, self.persistent, self.pause, self.options["immediate"] = ["confirm"], 0.5, 0.02, True
            self.immediate = 0.7
            self.settling = rng.choice([{"ack": 100}, {"ack": 95}])
        if kind == "letters":
            self.settling = {"ack": 30, "reject": 40, "requeue": 10}
        self.channels: dict[tuple[str, str], str] = {}
        self.tags = 0
        self.known: dict[str, list[tuple[str, str, str]]] = {}  # client → channel, mode, consumer tag

    def like(self) -> Like:
        """What the history is like, for clients of another protocol."""
        return Like(self.most, self.size, self.persistent, self.pause, self.options, self.features, self.chosen)

    def group(self) -> None:
        """Some queues keep groups together."""
        for step in self.drawn.steps if self.chosen else ():
            if step["do"] == "queue" and "arguments" in step and self.choices.random() < _GROUPED:
                step["arguments"] |= self.choices.choice(GROUPS)

    def select(self) -> None:
        """Some bindings pass on what they select alone."""
        choices = Random(f"bindings {self.seed}")
        for step in self.drawn.steps if self.chosen else ():
            if step["do"] == "bind" and "arguments" in step and choices.random() < _SELECTED:
                step["arguments"] = {**step["arguments"], SELECTOR: choices.choice(list(BOUND))}

    def steps(self, count: int) -> list[Step]:
        done: list[Step] = []
        publishes = count * self.weights["publish"] / sum(self.weights.values())
        width = 1 + len(self.drawn.queues) / 2 * (1 - self.drawn.direct_share)
        fits = _COPIES / publishes / width
        self.most = max(1, round(self.rng.choice([0.3, 1, 2]) * fits))
        clocks = dict.fromkeys(self.clients, 0.0)
        names, weights = list(self.weights), list(self.weights.values())
        for _ in range(count):
            client = self.rng.choice(self.clients)
            name = self.rng.choices(names, weights)[0]
            if (step := getattr(self, f"_{name}")(client)) is None:
                continue
            wait = round(self.rng.expovariate(1 / self.pause), 3) if self.rng.random() < 0.6 else 0.0
            clocks[client] += wait
            done.append({"client": client, "do": name, **({"wait": wait} if wait else {}), **step})
        self.seconds = max(clocks.values())
        return done + self.features.steps(self.clients[0])

    def _channel(self, client: str, modes: list[str] | None = None) -> Step:
        name = self.rng.choice(["a", "a", "b"])
        mode = self.channels.setdefault((client, name), self.rng.choice(self.modes))
        if modes and mode not in modes:
            name, mode = f"{name}-{modes[0]}", modes[0]
        return {"channel": name, "mode": mode}

    # -------------------------------------------------------------- messages

    def _publish(self, client: str) -> Step:
        rng, step = self.rng, self._channel(client)
        step |= self.drawn.destination(rng)
        if self.copied and self.copies.random() < _COPIED:
            step["headers"] = {**step.get("headers", {}), **self.drawn.more_keys(self.copies, step["exchange"])}
        if self.chosen and self.choices.random() < 0.8:
            step["headers"] = {**step.get("headers", {}), "colour": self.choices.choice(COLOURS)}
        step |= {
            "count": rng.randint(1, self.most),
            "size": self.size,
            "persistent": rng.random() < self.persistent,
            "await": rng.random() < 0.2,
        }
        if rng.random() < 0.2:
            step["pace"] = rng.choice([0.001, 0.01])
        if self.options["mandatory"] and rng.random() < 0.3:
            step["mandatory"] = True
        if self.options["immediate"] and step["mode"] != "tx" and rng.random() < self.immediate:
            step["immediate"] = True
        if self.options["ttl"] and rng.random() < 0.3:
            step["ttl"] = rng.choice([0, 50, 1000, 5000, 3_600_000])
        if self.options["priority"] and rng.random() < 0.5:
            step["priority"] = rng.randint(0, 9)
        self.features.publish(step)
        return step

    def _confirms(self, client: str) -> Step:
        return self._channel(client, ["confirm"])

    def _commit(self, client: str) -> Step:
        return self._channel(client, ["tx"])

    def _rollback(self, client: str) -> Step:
        return self._channel(client, ["tx"])

    # -------------------------------------------------------------- consumers

    def _consume(self, client: str) -> Step:
        rng, step = self.rng, self._channel(client)
        self.tags += 1
        tag = f"t{self.tags}"
        step |= {"queue": self.drawn.queue(rng), "tag": tag}
        self.known.setdefault(client, []).append((step["channel"], step["mode"], tag))
        if rng.random() < 0.7:
            step["prefetch"] = rng.choice([1, 2, 5, 10, 100, 1000])
            step["shared"] = rng.random() < 0.15
        if self.options["no_ack"] and rng.random() < 0.3:
            step["no_ack"] = True
        if rng.random() < 0.05:
            step["exclusive"] = True
        if rng.random() < 0.1:
            step["priority"] = rng.choice([-1, 1, 5])
        if self.chosen and self.choices.random() < 0.6:
            step["selector"] = self.choices.choice(list(CHOICES))
        step["settle"] = self.settling
        if rng.random() < 0.2:
            step["every"] = rng.choice([2, 5, 20])
        self.features.consume(step)
        return step

    def _cancel(self, client: str) -> Step | None:
        if not (known := self.known.get(client)):
            return None
        channel, mode, tag = known.pop(self.rng.randrange(len(known)))
        return {"channel": channel, "mode": mode, "tag": tag}

    def _flip(self, client: str) -> Step | None:
        """A consumer that comes and goes all the time."""
        if self.known.get(client):
            return {**(self._cancel(client) or {}), "do": "cancel"}
        step = self._consume(client)
        step.pop("exclusive", None)
        return {**step, "do": "consume"}

    def _settle(self, client: str) -> Step:
        rng = self.rng
        return {
            **self._channel(client),
            "how": rng.choices(["ack", "requeue", "reject"], [6, 2, 1])[0],
            "which": rng.choice(["oldest", "newest", "half", "all"]),
        }

    def _recover(self, client: str) -> Step:
        return self._channel(client)

    def _get(self, client: str) -> Step:
        rng = self.rng
        step = {
            **self._channel(client),
            "queue": self.drawn.queue(rng),
            "how": rng.choice(["ack", "ack", "requeue", ""]),
        }
        if self.options["no_ack"] and rng.random() < 0.3:
            step["no_ack"] = True
        return step

    def _mistake(self, _client: str) -> Step:
        ends = self.rng.choice(["channel", "channel", "connection", "frame"])
        return {"channel": "mistake", "queue": self.drawn.queue(self.rng), "ends": ends}

    # -------------------------------------------------------------- the rest

    def _purge(self, client: str) -> Step:
        return {**self._channel(client), "queue": self.drawn.queue(self.rng)}

    def _count(self, client: str) -> Step:
        return {**self._channel(client), "queue": self.drawn.queue(self.rng)}

    def _own(self, client: str) -> Step:
        self.tags += 1
        queue = f"own-{client}-{self.tags}"
        self.drawn.own.append(queue)
        step: Step = {"channel": "own", "queue": queue, "bound": [list(self.drawn.plain_source(self.rng))]}
        self.features.own(step)
        return step

    def _touch(self, client: str) -> Step | None:
        others = [queue for queue in self.drawn.own if not queue.startswith(f"own-{client}-")]
        return {"queue": self.rng.choice(others)} if others else None

    def _change(self, client: str) -> Step | None:
        del client
        return None if (step := self.drawn.change(self.rng)) is None else {**step, "client": self.clients[0]}

    def _grow(self, client: str) -> Step | None:
        step = self.drawn.grow()
        return None if step is None else {**step, "client": client}

    def _close_channel(self, client: str) -> Step:
        return self._channel(client)

    def _close(self, client: str) -> Step:
        del client
        return {"elsewhere": self.rng.random() < 0.5}

    def _abort(self, client: str) -> Step:
        return self._close(client)
