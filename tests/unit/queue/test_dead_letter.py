"""x-death as RabbitMQ 3.10 writes it."""

from __future__ import annotations

from services.common.message import format_named
from services.common.message.amqp_0_9 import compose
from services.queue.machine.context import DeadLetter
from services.queue.machine.dead_letter import is_circle, rewrite, routing_keys
from services.queue.machine.entry import Entry
from services.queue.machine.message import Holding, Message
from services.queue.machine.options import read_options
from tests.support.messages import facts

FORMAT = format_named("amqp-0-9")
EXPIRATION = b"\x01\x00\x0260"  # the property expiration, "60"


def letter(properties: bytes, reason: str, queue: str = "q", **arguments: str) -> DeadLetter:
    options = read_options(1, "/", queue, 0, {"x-dead-letter-exchange": "dlx", **arguments})
    entry = Entry(Message(1, facts("ex"), properties, b""), 0)
    return DeadLetter(options, entry, reason, 5_000, Holding())


def test_first_death() -> None:
    """The first death is described, its expiration moved into the description, and named in headers of its own."""
    properties, headers = rewrite(letter(EXPIRATION, "expired"))
    [death] = headers["x-death"]
    assert death["time"].timestamp() == 5
    assert {key: value for key, value in death.items() if key != "time"} == {
        "count": 1,
        "reason": "expired",
        "queue": "q",
        "exchange": "ex",
        "routing-keys": ["key"],
        "original-expiration": "60",
    }
    first = {key: value for key, value in headers.items() if key.startswith("x-first-death-")}
    assert first == {
        "x-first-death-reason": "expired",
        "x-first-death-queue": "q",
        "x-first-death-exchange": "ex",
    }
    assert FORMAT.text(properties, "expiration") is None
    assert FORMAT.headers(properties) == headers


def test_same_death_again() -> None:
    """A death of the same queue and reason is counted in its old entry, which moves to the front."""
    properties, _ = rewrite(letter(b"\x00\x00", "expired"))
    properties, _ = rewrite(letter(properties, "rejected", queue="other"))
    _, headers = rewrite(letter(properties, "expired"))
    assert [(death["queue"], death["count"]) for death in headers["x-death"]] == [("q", 2), ("other", 1)]
    assert headers["x-first-death-reason"] == "expired"


def test_many_keys() -> None:
    """Each death names all keys: what the publisher said is kept nevertheless, and a circle seen."""
    properties = FORMAT.with_headers(b"\x00\x00", {"CC": [f"key{number}" for number in range(1500)], "app": "mine"})
    for queue in ("a", "b", "c"):
        properties, headers = rewrite(letter(properties, "expired", queue=queue))
        assert headers["app"] == "mine"
    assert [death["queue"] for death in headers["x-death"]] == ["c", "b", "a"]
    assert is_circle(letter(properties, "expired"), headers, "a")


def test_circle() -> None:
    """To a queue that it was in before is a cycle, unless a consumer rejected it in between or now."""
    properties, headers = rewrite(letter(b"\x00\x00", "expired"))
    assert is_circle(letter(properties, "expired"), headers, "q")
    assert not is_circle(letter(properties, "expired"), headers, "elsewhere")
    assert not is_circle(letter(properties, "rejected"), headers, "q")
    properties, headers = rewrite(letter(properties, "rejected", queue="other"))
    assert not is_circle(letter(properties, "expired"), headers, "q")


def test_routing_keys() -> None:
    """A dead-letter key replaces all keys, CC among them; without one the original keys count."""
    properties = FORMAT.with_headers(b"\x00\x00", {"CC": ["copy"]})
    _, headers = rewrite(letter(properties, "maxlen"))
    assert routing_keys(letter(properties, "maxlen"), headers) == ["key", "copy"]
    overridden = letter(properties, "maxlen", **{"x-dead-letter-routing-key": "dead"})
    _, headers = rewrite(overridden)
    assert routing_keys(overridden, headers) == ["dead"]
    assert "CC" not in headers
    assert headers["x-death"][0]["routing-keys"] == ["key", "copy"]


def test_headers_that_are_too_many() -> None:
    """Of a message that was stored before they had a bound: they are left out, like those that nobody can read."""
    stored = compose({"message-id": "id"}, {f"k{n}": n for n in range(100_000)}, persistent=True, priority=0)
    properties, headers = rewrite(letter(stored, "expired"))
    assert headers.keys() == {"x-death", "x-first-death-reason", "x-first-death-queue", "x-first-death-exchange"}
    assert FORMAT.text(properties, "message-id") == "id"
