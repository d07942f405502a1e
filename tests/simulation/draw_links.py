"""Clients of AMQP 1.0, which some histories have besides: drawn apart, so that all else of a seed stays as it was."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.simulation.choices import CHOICES, COLOURS
from tests.simulation.draw_features import Features
from tests.simulation.draw_topology import Drawn
from tests.simulation.plan import Step

SHARE: Final = 0.15  # of histories
_WEIGHTS: Final = {
    "publish": 40, "consume": 12, "settle": 10, "credit": 6, "drain": 6, "stop": 2, "cancel": 4, "detach": 2,
    "confirms": 2, "close_channel": 1, "close": 1, "abort": 1,
}  # fmt: skip
_SETTLING: Final[tuple[dict[str, int], ...]] = (
    {"ack": 100},
    {"ack": 60, "requeue": 5, "release": 10, "modify": 5, "reject": 5, "quiet": 5},
    {"ack": 50, "release": 20, "undeliverable": 10},
    {"ack": 50},
    {},
)
_QUEUES: Final = ("{}", "/queues/{}", "/queue/{}")  # how an address says so
_EXCHANGES: Final = ("{}", "/exchanges/{}", "/exchange/{}")
_KEYED: Final = ("{}/{}", "/exchanges/{}/{}", "/exchange/{}/{}")
_FAULTS: Final = ("tear", "tear", "cut", "slow")


@dataclass
class Like:
    """What the history is like: messages of one publish, their size, the share that is persistent, seconds between."""

    most: int
    size: int
    persistent: float
    pause: float
    options: dict[str, bool]
    features: Features
    chosen: bool


def has_links(seed: str) -> bool:
    """Whether a virtual host's clients are also such."""
    return Random(f"has links {seed}").random() < SHARE


class Links:
    """Of one virtual host."""

    def __init__(self, seed: str, drawn: Drawn, like: Like, first: int, gateways: int) -> None:
        """`first` is the number of the first client."""
        self.rng = rng = Random(f"links {seed}")
        self.drawn, self.like = drawn, like
        self.clients = [
            {"name": f"l{first + number}", "gateway": number % gateways, "protocol": "1.0"}
            | ({"frame": 512} if rng.random() < 0.15 else {})
            for number in range(rng.choice([1, 1, 2, 3]))
        ]
        self.settling = rng.choice(_SETTLING)
        self._settled = rng.choice([0.0, 0.2, 0.5])  # share of publishes and links
        self._sessions: dict[tuple[str, str], Step] = {}
        self._known: dict[str, list[Step]] = {}
        self._tags = 0

    def steps(self, count: int) -> list[Step]:
        """So many, of all clients together."""
        rng, done = self.rng, []
        names, weights = list(_WEIGHTS), list(_WEIGHTS.values())
        for _ in range(count):
            client, name = rng.choice(self.clients)["name"], rng.choices(names, weights)[0]
            step = getattr(self, f"_{name}")(client)
            if step is not None:
                wait = round(rng.expovariate(1 / self.like.pause), 3) if rng.random() < 0.6 else 0.0
                done.append({"client": client, "do": name, **({"wait": wait} if wait else {}), **step})
        return done

    def faults(self, seconds: float, shape: Step) -> list[Step]:
        """Of their connections."""
        rng = self.rng
        found: list[Step] = []
        for _ in range(rng.choice([0, 0, 1, 3])):
            what = rng.choice(_FAULTS)
            ends = [rng.choice(self.clients)["name"], f"gateway-{rng.randint(1, shape['gateways'])}"]
            lasts = (
                {} if what == "tear" else {"seconds": round(rng.choice([0.3, 3.0, 10.0]) * rng.uniform(0.5, 1.5), 2)}
            )
            found.append({"at": round(rng.uniform(0, seconds), 3), "do": what, "args": ends, **lasts})
        return found

    def _channel(self, client: str) -> Step:
        """A session, which is of one kind in all of a history."""
        rng, name = self.rng, self.rng.choice(["a", "a", "b"])
        if (client, name) not in self._sessions:
            made: Step = {"channel": name}
            if rng.random() < 0.3:
                made["second"] = True
            if rng.random() < 0.4:
                made["window"] = rng.choice([1, 3, 20])
            self._sessions[client, name] = made
        return dict(self._sessions[client, name])

    # -------------------------------------------------------------- messages

    def _publish(self, client: str) -> Step:
        rng, like, step = self.rng, self.like, self._channel(client)
        step |= self._to(self.drawn.destination(rng))
        if like.chosen and rng.random() < 0.8:
            step["headers"] = {**step.get("headers", {}), "colour": rng.choice(COLOURS)}
        step |= {
            "count": rng.randint(1, like.most),
            "size": like.size,
            "persistent": rng.random() < like.persistent,
            "await": rng.random() < 0.2,
        }
        if rng.random() < self._settled:
            step["settled"] = True
        if rng.random() < 0.2:
            step["pace"] = rng.choice([0.001, 0.01])
        if rng.random() < 0.1:
            step["most"] = max(rng.choice([50, 300]), like.size // 50)
        if like.options.get("ttl") and rng.random() < 0.3:
            step["ttl"] = rng.choice([0, 50, 1000, 5000, 3_600_000])
        if like.options.get("priority") and rng.random() < 0.5:
            step["priority"] = rng.randint(0, 9)
        like.features.publish(step)
        return step

    def _to(self, destination: Step) -> Step:
        """With an address: a queue's; or an exchange's, which says the key, or leaves it to each message."""
        rng, exchange = self.rng, destination["exchange"]
        if not exchange:
            keys = destination["keys"][:1]
            return {**destination, "keys": keys, "address": rng.choice(_QUEUES).format(*keys)}
        if rng.random() < 0.5:
            return {**destination, "address": rng.choice(_EXCHANGES).format(exchange), "subject": True}
        keys = destination["keys"][:1]
        return {**destination, "keys": keys, "address": rng.choice(_KEYED).format(exchange, *keys)}

    def _confirms(self, client: str) -> Step:
        return self._channel(client)

    def _detach(self, client: str) -> Step:
        return self._channel(client)

    # -------------------------------------------------------------- consumers

    def _consume(self, client: str) -> Step:
        rng, step = self.rng, self._channel(client)
        self._tags += 1
        step |= {"queue": self.drawn.queue(rng), "tag": f"{client}-{self._tags}"}
        step["credit"] = rng.choice([0, 1, 2, 5, 10, 100, 1000])
        if rng.random() < 0.7:
            step["renew"] = max(step["credit"], 1)
        if rng.random() < self._settled:
            step["no_ack"] = True
        if self.like.chosen and rng.random() < 0.6:
            step["selector"] = rng.choice(list(CHOICES))
        step["settle"] = self.settling
        if rng.random() < 0.2:
            step["every"] = rng.choice([2, 5, 20])
        self.like.features.consume(step)
        self._known.setdefault(client, []).append(step)
        return dict(step)

    def _one(self, client: str) -> Step | None:
        """A consumer that may be there."""
        known = self._known.get(client)
        return dict(self.rng.choice(known)) if known else None

    def _about(self, client: str, **more: Any) -> Step | None:
        if (one := self._one(client)) is None:
            return None
        return {"channel": one["channel"], "tag": one["tag"], **more}

    def _cancel(self, client: str) -> Step | None:
        return self._about(client)

    def _credit(self, client: str) -> Step | None:
        return self._about(client, credit=self.rng.choice([1, 5, 50, 1000]))

    def _drain(self, client: str) -> Step | None:
        rng = self.rng
        more = {"twice": True} if rng.random() < 0.2 else {}
        return self._about(client, credit=rng.choice([1, 10, 100, 1000]), then=rng.choice([0, 1, 10, 100]), **more)

    def _stop(self, client: str) -> Step | None:
        return self._about(client, then=self.rng.choice([0, 1, 10, 100]))

    def _settle(self, client: str) -> Step:
        rng = self.rng
        how = rng.choice(["ack", "ack", "ack", "requeue", "reject", "release", "modify", "undeliverable", "quiet"])
        return {**self._channel(client), "how": how, "which": rng.choice(["all", "half", "oldest", "newest"])}

    # -------------------------------------------------------------- ends

    def _close_channel(self, client: str) -> Step:
        return self._channel(client)

    def _close(self, client: str) -> Step:
        return {"elsewhere": self.rng.random() < 0.5}

    def _abort(self, client: str) -> Step:
        return self._close(client)
