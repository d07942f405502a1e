"""Rules of operators, as the store tells of them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic import BaseModel
from structlog.testing import capture_logs

from services.gateway.rules import followed
from services.rpc.store_pb2 import Record, Records


class Rule(BaseModel):
    name: str


def record(name: str, value: str = "") -> Record:
    return Record(kind="rule", key=name, value=(value or f'{{"name": "{name}"}}').encode())


async def told(*batches: Records) -> list[list[str]]:
    async def watch() -> AsyncIterator[Records]:
        for batch in batches:
            yield batch

    return [[rule.name for rule in rules] async for rules in followed(watch(), Rule.model_validate_json, "tests")]


async def test_a_snapshot_and_what_changes() -> None:
    """The rules of a whole snapshot, in however many pieces it comes, then those after each change."""
    first = Records(records=[record("a")], snapshot=True)
    last = Records(records=[record("b")], snapshot=True, last=True)
    changes = [Records(records=[record("c")]), Records(records=[Record(kind="rule", key="a", deleted=True)])]
    assert await told(first, last, *changes) == [["a", "b"], ["a", "b", "c"], ["b", "c"]]


async def test_another_snapshot() -> None:
    """Takes the place of all that was there."""
    before = Records(records=[record("a")], snapshot=True, last=True)
    assert await told(before, Records(records=[record("b")], snapshot=True, last=True)) == [["a"], ["b"]]


async def test_one_that_cannot_be_read() -> None:
    """Is said, and the others are followed."""
    batch = Records(records=[record("a", "{"), record("b")], snapshot=True, last=True)
    with capture_logs() as logged:
        assert await told(batch) == [["b"]]
    assert [(line["rule"], line["what"]) for line in logged] == [("a", "tests")]
