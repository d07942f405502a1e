"""Links of AMQP 1.0 that outlive their connections: drawn apart, between steps that there are anyway."""

from __future__ import annotations

from random import Random
from typing import Any, Final
from urllib.parse import quote

from tests.simulation.choices import BOUND
from tests.simulation.draw_topology import Drawn
from tests.simulation.plan import Step

SHARE: Final = 0.4  # of histories with clients of AMQP 1.0
_OFTEN: Final = 0.25  # of steps, behind which there is one of these
_WEIGHTS: Final = {"subscribe": 60, "leave": 20, "unsubscribe": 5}
_KEYS: Final = ("#", "#", "a", "a.b", "a.*")  # of the links
_TO: Final = ("a", "a.b", "a.c")  # of messages
_MORE: Final = 0.4  # share of what their clients publish that goes to one of their exchanges
_FORMS: Final = ("{}/{}", "/exchange/{}/{}", "/exchanges/{}/{}")


class Subscriptions:
    """Of one virtual host. Each is of one exchange, by one key; any client may take it up, or end it."""

    def __init__(self, rng: Random, drawn: Drawn, settling: dict[str, int], *, chosen: bool) -> None:
        self._rng, self._settling = rng, settling
        self._all = [self._one(f"s{number}", drawn, chosen=chosen) for number in range(rng.choice([1, 1, 2, 4]))]

    def _one(self, name: str, drawn: Drawn, *, chosen: bool) -> Step:
        rng = self._rng
        used = [name for name in drawn.plain if name in drawn.exchanges] or drawn.plain
        exchange, key = rng.choice(used), rng.choice(_KEYS)
        if drawn.exchanges.get(exchange) == "direct":
            key = rng.choice(_TO)
        form = rng.choice(_FORMS)
        its: Step = {"tag": name, "exchange": exchange, "key": key}
        its["address"] = form.format(exchange, quote(key) if form.startswith("/exchanges") else key)
        if chosen and rng.random() < 0.4:
            its["selector"] = rng.choice(list(BOUND))
        return its

    def publish(self, step: Step) -> Step:
        """The same, to the exchange of one of them."""
        exchange = self._rng.choice(self._all)["exchange"]
        return {**step, "exchange": exchange, "keys": list(_TO), "address": f"/exchange/{exchange}", "subject": True}

    def step(self, client: str) -> Step:
        """One of a client's."""
        rng = self._rng
        what = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        its, channel = rng.choice(self._all), rng.choice(["a", "a", "b"])
        step: dict[str, Any] = {"client": client, "do": what, "channel": channel, "tag": its["tag"]}
        if what != "subscribe":
            return step
        credit = rng.choice([1, 5, 100, 1000])
        more = {"credit": credit, "renew": credit, "settle": self._settling}
        return {**step, **its, **more, **({"recalls": True} if rng.random() < 0.3 else {})}


def subscribed(
    seed: str, steps: list[Step], clients: list[str], drawn: Drawn, settling: dict[str, int], *, chosen: bool
) -> list[Step]:
    """The same steps, with such between them in some histories."""
    rng, found = Random(f"subscriptions {seed}"), list[Step]()
    if rng.random() > SHARE:
        return steps
    its = Subscriptions(rng, drawn, settling, chosen=chosen)
    for step in steps:
        more = step["do"] == "publish" and rng.random() < _MORE
        found.append(its.publish(step) if more else step)
        if rng.random() < _OFTEN:
            found.append(its.step(rng.choice(clients)))
    return found
