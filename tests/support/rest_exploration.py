"""Schemathesis at a broker's HTTP: it reads the document, asks what the document says, and looks at the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from services.mgmt.rest.rabbitmq.paths import OURS
from tests.support.rest_inventory import NAMED, NAMES

APIS = ("Hopline's", "Broker-J's", "RabbitMQ's")
_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "ignored_auth",
    "says_what_is_wrong",
)
_PHASES = ("examples", "coverage", "fuzzing", "stateful")
_MAY_FAIL = "GET /api/health/checks/"
"""To answer 503 is what these are for."""
_HOW_OFTEN = 0.7  # share of names that are those of existing objects


class Fault(NamedTuple):
    """An answer that breaks the document."""

    operation: str
    what: str
    again: str
    """The request, for curl."""

    def __str__(self) -> str:
        return f"{self.operation}: {self.what}\n    {self.again}"


@schemathesis.check
def says_what_is_wrong(_context: Any, response: Any, case: Any) -> None:
    """An answer that refuses says why, for humans."""
    if 400 <= response.status_code < 500 and case.method != "HEAD":
        told = _json_of(response)
        assert told.get("reason") or told.get("errorMessage"), f"does not say what is wrong: {_seen(response)}"


def _json_of(response: Any) -> dict[str, Any]:
    try:
        told: dict[str, Any] = response.json()
    except json.JSONDecodeError:
        raise AssertionError(f"is no JSON: {_seen(response)}") from None
    return told


def _seen(response: Any) -> str:
    asked, head = response.request, 300
    return f"{response.status_code} {response.content[:head]!r} to {asked.method} {asked.url[:head]} {asked.headers}"


def api_of(path: str) -> str:
    """Whose a path of the document is."""
    first = (*path.split("/"), "")[2]
    if "{version}" in path or path.startswith("/service/"):
        return APIS[1]
    return APIS[2] if first in OURS else APIS[0]


def operations(document: dict[str, Any], api: str) -> list[str]:
    """As schemathesis calls them."""
    return [
        f"{method.upper()} {path}" for path, its in document["paths"].items() if api_of(path) == api for method in its
    ]


class Exploration(NamedTuple):
    """Of one document, at one port."""

    document: dict[str, Any]
    port: int
    seed: int
    examples: int
    phases: tuple[str, ...] = ("fuzzing",)

    def faults(self, operation: str) -> Iterator[Fault]:
        """What is wrong with answers of one operation."""
        schema = schemathesis.openapi.from_dict(self._with_only(operation), config=self._config(operation))
        for event in from_schema(schema.include(name=operation)).execute():
            if isinstance(event, events.ScenarioFinished):
                yield from _failed(operation, event)
            elif isinstance(event, events.NonFatalError | events.FatalError):
                yield Fault(operation, str(getattr(event, "value", event)), "")

    def _with_only(self, operation: str) -> dict[str, Any]:
        """The document without other paths: to read all of them once for each takes longer than the questions do."""
        path = operation.partition(" ")[2]
        return {**self.document, "paths": {path: self.document["paths"][path]}}

    def _config(self, operation: str) -> SchemathesisConfig:
        wanted = {name: {"enabled": True} for name in _CHECKS}
        wanted["not_a_server_error"]["enabled"] = not operation.startswith(_MAY_FAIL)
        # What an answer teaches is not the same in each run: identifiers, times.
        dull = {"extra-data-sources": {"responses": False}, "error-feedback": {"enabled": False}}
        phases: dict[str, Any] = {name: {"enabled": name in self.phases} for name in _PHASES}
        phases["fuzzing"] |= dull
        return SchemathesisConfig.from_dict({
            "seed": self.seed,
            "suppress-health-check": ["all"],
            "base-url": f"http://127.0.0.1:{self.port}",
            "auth": {"basic": {"username": "guest", "password": "guest"}},
            "request-timeout": 60,
            "continue-on-failure": True,
            "dictionaries": {name: {"values": list(values)} for name, values in NAMES.items()},
            "parameters": {where: {"dictionary": of, "probability": _HOW_OFTEN} for where, of in NAMED.items()},
            "checks": {"enabled": False, **wanted},
            "phases": phases,
            "generation": {"max-examples": self.examples, "database": "none"},
        })  # fmt: skip


def _failed(operation: str, event: events.ScenarioFinished) -> Iterator[Fault]:
    for each in (check for checks in event.recorder.checks.values() for check in checks):
        if each.failure_info:
            failure = each.failure_info.failure
            yield Fault(operation, f"{failure.title}: {failure.message}", each.failure_info.code_sample)
