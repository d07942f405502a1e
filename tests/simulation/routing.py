"""A virtual host as the specification describes it, read plainly: where a message goes, and what changes do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.simulation.choices import BOUND, SELECTOR
from tests.simulation.plan import Step

_PREDECLARED = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.headers": "headers",
    "amq.match": "headers",
    "amq.topic": "topic",
}


@dataclass
class Exchange:
    """What is bound to it: (destination, to an exchange?, key, arguments)."""

    type: str
    alternate: str | None = None
    auto_delete: bool = False
    durable: bool = True
    bindings: list[tuple[str, bool, str, dict[str, Any]]] = field(default_factory=list)


class Topology:
    """Of one virtual host."""

    def __init__(self) -> None:
        self.exchanges = {name: Exchange(type_) for name, type_ in _PREDECLARED.items()}
        self.queues: dict[str, Step] = {}

    def apply(self, step: Step) -> None:
        """A change that was carried out; one that repeats what is so changes nothing."""
        match step["do"]:
            case "queue" | "own":
                self.queues.setdefault(step["queue"], step)
            case "exchange":
                alternate = (step.get("arguments") or {}).get("alternate-exchange")
                made = Exchange(step["type"], alternate, step.get("auto_delete", False), step.get("durable", True))
                self.exchanges.setdefault(step["exchange"], made)
            case "delete_queue":
                if self.queues.pop(step["queue"], None):
                    self._unbind_all(step["queue"], to_exchange=False)
            case "delete_exchange":
                self._delete_exchange(step["exchange"])
            case "bind":
                self._bind(step)
            case "unbind":
                self._unbind(step["source"], _binding(step))

    def _bind(self, step: Step) -> None:
        there = self.exchanges if step.get("to_exchange") else self.queues
        if step["source"] in self.exchanges and step["to"] in there:
            bindings = self.exchanges[step["source"]].bindings
            if _binding(step) not in bindings:
                bindings.append(_binding(step))

    def _unbind(self, source: str, binding: tuple[str, bool, str, dict[str, Any]]) -> None:
        exchange = self.exchanges.get(source)
        if exchange and binding in exchange.bindings:
            exchange.bindings.remove(binding)
            if exchange.auto_delete and not exchange.bindings:
                self._delete_exchange(source)

    def _delete_exchange(self, name: str) -> None:
        if self.exchanges.pop(name, None):
            self._unbind_all(name, to_exchange=True)

    def _unbind_all(self, destination: str, *, to_exchange: bool) -> None:
        for name in list(self.exchanges):
            exchange = self.exchanges.get(name)
            for binding in list(exchange.bindings) if exchange else ():
                if binding[:2] == (destination, to_exchange):
                    self._unbind(name, binding)

    def faded(self) -> Topology:
        """What is left of it when all processes that remembered transient objects have died."""
        left = Topology()
        left.queues = {name: step for name, step in self.queues.items() if step.get("durable", step["do"] != "own")}
        left.exchanges = {name: exchange for name, exchange in self.exchanges.items() if exchange.durable}
        for name, exchange in left.exchanges.items():
            there = [each for each in exchange.bindings if each[0] in (left.exchanges if each[1] else left.queues)]
            left.exchanges[name] = replace(exchange, bindings=there)
        return left

    # -------------------------------------------------------------- where messages go

    def route(self, exchange: str, key: str, headers: Mapping[str, Any]) -> set[str] | None:
        """The queues; None when there is no such exchange."""
        if exchange not in self.exchanges:
            return None
        keys = keys_of(key, headers)
        queues: set[str] = set()
        seen, pending = {exchange}, [exchange]
        while pending:
            name = pending.pop()
            for destination, to_exchange in self._step(name, keys, headers):
                if not to_exchange:
                    queues.add(destination)
                elif destination in self.exchanges and destination not in seen:
                    seen.add(destination)
                    pending.append(destination)
        return queues

    def _step(self, name: str, keys: list[str], headers: Mapping[str, Any]) -> list[tuple[str, bool]]:
        if not name:
            return [(key, False) for key in keys if key in self.queues]
        exchange = self.exchanges[name]
        found = [
            (destination, to_exchange)
            for destination, to_exchange, pattern, arguments in exchange.bindings
            if selects(arguments, headers)
            and any(_MATCHES[exchange.type](pattern, arguments, key, headers) for key in keys)
        ]
        if not found and exchange.alternate is not None:
            return [(exchange.alternate, True)]
        return found


def keys_of(key: str, headers: Mapping[str, Any]) -> list[str]:
    """All that a message is routed by."""
    return [key, *headers.get("CC", ()), *headers.get("BCC", ())]


def _binding(step: Step) -> tuple[str, bool, str, dict[str, Any]]:
    return step["to"], bool(step.get("to_exchange")), step.get("key", ""), step.get("arguments") or {}


# -------------------------------------------------------------- exchange types


def selects(arguments: Mapping[str, Any], headers: Mapping[str, Any]) -> bool:
    """Whether a binding that matches passes a message on."""
    return SELECTOR not in arguments or BOUND[arguments[SELECTOR]](headers)


def topic_matches(pattern: list[str], words: list[str]) -> bool:
    """`*` is one word, `#` any number of them, none too."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(topic_matches(pattern[1:], words[at:]) for at in range(len(words) + 1))
    return bool(words) and pattern[0] in {"*", words[0]} and topic_matches(pattern[1:], words[1:])


def headers_match(arguments: Mapping[str, Any], headers: Mapping[str, Any]) -> bool:
    """x-match: all (by default), any; conditions that begin with x- count only for all-with-x, any-with-x."""
    match = arguments.get("x-match", "all")
    conditions = {
        name: value
        for name, value in arguments.items()
        if name not in {"x-match", SELECTOR} and (match.endswith("-with-x") or not name.startswith("x-"))
    }
    held = [name in headers and (value is None or _same(headers[name], value)) for name, value in conditions.items()]
    return any(held) if match.startswith("any") else all(held)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


_MATCHES = {
    "fanout": lambda pattern, arguments, key, headers: True,
    "direct": lambda pattern, arguments, key, headers: pattern == key,
    "topic": lambda pattern, arguments, key, headers: topic_matches(_words(pattern), _words(key)),
    "headers": lambda pattern, arguments, key, headers: headers_match(arguments, headers),
}
