"""Selectors in what is declared, found before they are compiled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.common.arguments import costly, filters
from services.common.message import arguments
from services.common.selectors import selector as compiling
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.records import binding_key, binding_record
from services.rpc.router_pb2 import QueueDefinition, TopologyFrame, TopologyRecord

_TWO = {"a": {filters.SELECTOR: ["a = 1"]}, "b": {filters.SELECTOR: ["b = 2"]}, "n": {filters.REPLAY: ["5"]}}
_ALL_OF_TWO = ["a = 1", "b = 2", "(a = 1) AND (b = 2)"]


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ({}, []),
        ({"x-max-length": 3}, []),
        ({filters.SELECTOR: "a = 1"}, ["a = 1"]),
        ({filters.SELECTOR: 1}, []),
        ({"defaultFilters": _TWO}, _ALL_OF_TWO),
        ({"qpid.default_filters": json.dumps(_TWO)}, _ALL_OF_TWO),
        ({"defaultFilters": {"r": {filters.SELECTOR: ["a = 1"]}}}, ["a = 1"]),
        ({"defaultFilters": "no JSON"}, []),
        ({"defaultFilters": {"r": {filters.SELECTOR: [1]}}}, []),
    ],
)
def test_in_arguments(table: dict[str, Any], found: list[str]) -> None:
    """Each, and what they are together; of what is none its check says so."""
    assert costly.selectors_in(arguments.dump(table)) == found


def test_in_what_cannot_be_read() -> None:
    """Nothing: it is refused where it is read."""
    assert costly.selectors_in(b'"defaultFilters"') == []


def test_in_a_frame() -> None:
    """Of bindings that are made; what queues have is wanted where their consumers come."""
    queue = QueueDefinition(arguments=arguments.dump({"defaultFilters": _TWO}))
    bound = [_record(Binding(1, "k", arguments.dump({filters.SELECTOR: "c = 3"})))]
    bound.append(TopologyRecord(kind="binding", key=bound[0].key, deleted=True))
    bound.append(TopologyRecord(kind="binding", key="k", value=b"x-filter-jms-selector"))
    frame = TopologyFrame(queues=[queue], records=bound)
    assert costly.selectors_of(frame) == ["c = 3"]


def test_what_is_too_much_together_is_not_compiled_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One declaration may have hundreds: the router would stand still for all of them, and refuse it then."""
    compiled: list[str] = []
    monkeypatch.setattr(compiling, "_compiled", compiled.append)
    long = " OR ".join(f"never{number} = 1" for number in range(200))
    wrong = filters.costly({f"n{number}": {filters.SELECTOR: [f"{long} OR n = {number}"]} for number in range(40)})
    assert wrong
    assert "one selector together" in wrong
    assert compiled == []


def _record(binding: Binding) -> TopologyRecord:
    value = binding_record("/", "x", binding, durable=True).value
    return TopologyRecord(kind="binding", key=binding_key("/", "x", binding).key, value=value)
