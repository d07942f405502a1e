"""A client of AMQP 1.0 that takes credit back while messages are on their way to it, and soon gives it again.

It has a queue of its own, so that nobody else may have what goes back: the order of all of it is judged. Drawn apart.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tests.simulation.plan import Step

SHARE: Final = 0.3  # of histories with clients of AMQP 1.0
_ROUNDS: Final = 15
_QUEUE: Final = "taken-back"
_TAG: Final = "taken"


def taken_back(seed: str, host: str, topology: list[Step], clients: list[dict[str, Any]], steps: list[Step]) -> None:
    """Adds to the plan of some histories what such a client of a virtual host needs and does."""
    rng = Random(f"taken back {seed}")
    if rng.random() < SHARE:
        name = f"b{len(clients)}"
        topology.append({"do": "queue", "queue": _QUEUE, "arguments": {}, "durable": True, "host": host})
        clients.append({"name": name, "gateway": 0, "protocol": "1.0", "host": host})
        steps += _Load(rng, name).steps()


class _Load:
    """Steps of the client."""

    def __init__(self, rng: Random, client: str) -> None:
        self._rng, self._client = rng, client

    def steps(self) -> list[Step]:
        """In each round it gives much credit, takes it back, and gives some again while its own messages come."""
        consume = {"queue": _QUEUE, "credit": 5, "renew": 5, "settle": {"ack": 100}}
        return [self._step("consume", **consume), *(step for _ in range(_ROUNDS) for step in self._round())]

    def _round(self) -> list[Step]:
        rng = self._rng
        some = [self._publish() for _ in range(rng.choice([1, 1, 2]))]
        stop = self._step("stop", then=rng.choice([1, 1, 5]))
        told = [stop, *some] if rng.random() < 0.5 else [*some, stop]
        return [self._step("credit", credit=1000, wait=0.05), *told]

    def _publish(self) -> Step:
        rng = self._rng
        message = {"exchange": "", "keys": [_QUEUE], "address": _QUEUE, "count": rng.choice([3, 10]), "size": 40}
        pace = {"pace": 0.001} if rng.random() < 0.3 else {}
        return self._step("publish", persistent=rng.random() < 0.8, **{"await": False}, **message, **pace)

    def _step(self, do: str, **more: Any) -> Step:
        its = {"tag": _TAG} if do != "publish" else {}
        return {"client": self._client, "do": do, "channel": "a", **its, **more}
