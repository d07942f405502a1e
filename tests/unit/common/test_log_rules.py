"""Levels of logs that change while processes run."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import structlog

from services.common import log
from services.common.clients.log_rules import apply
from services.common.log_rules import ALL, LIBRARIES, OWN, ROOT, LogRule, level_of, of_settings
from services.rpc.store_pb2 import Record, Records


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = structlog.get_config(), logging.getLogger().level
    yield
    structlog.configure(**before[0])
    log.take_from("debug", "warning")
    logging.getLogger().setLevel(before[1])


def record(name: str, logger: str, level: Any) -> Record:
    return Record(kind="log_rule", key=name, value=LogRule(logger=logger, level=level).to_json())


async def told(*batches: Records) -> AsyncIterator[Records]:
    for batch in batches:
        yield batch


@pytest.mark.parametrize(
    ("rules", "own", "others"),
    [
        ({}, "info", "warning"),
        ({"x": LogRule(logger="services.queue.*", level="DEBUG")}, "debug", "warning"),
        ({"x": LogRule(logger="services.store.*", level="DEBUG")}, "info", "warning"),
        ({OWN: LogRule(logger=ALL, level="ERROR")}, "error", "warning"),
        ({LIBRARIES: LogRule(logger=ROOT, level="DEBUG")}, "info", "debug"),
    ],
)
def test_what_is_taken(rules: dict[str, LogRule], own: str, others: str) -> None:
    """What any rule takes, of a queue process; those of the settings are as a record of their name says."""
    there = {**of_settings("info"), **rules}.values()
    assert (level_of((ALL, "services.queue.*"), there), level_of((ROOT,), there)) == (own, others)


async def test_at_run_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Loggers that have written already heed it; a record that is no rule, or has gone, says nothing."""
    lines = io.StringIO()
    log.configure("queue", "json", "info")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(lines))
    logger = structlog.get_logger()

    async def after(*batches: Records) -> list[str]:
        await apply(told(*batches), "queue", "info")
        lines.seek(0)
        lines.truncate()
        for method in ("debug", "info", "error"):
            getattr(logger, method)("said")
        return [method for method in ("debug", "info", "error") if f'"level": "{method}"' in lines.getvalue()]

    whole = {"snapshot": True, "last": True}
    assert await after(Records(**whole)) == ["info", "error"]
    more = Records(records=[record("more", "services.queue.*", "DEBUG")], **whole)
    assert await after(more) == ["debug", "info", "error"]
    gone = Records(records=[Record(kind="log_rule", key="more", deleted=True)])
    assert await after(more, gone) == ["info", "error"]
    less = record(OWN, ALL, "ERROR")
    wrong = Record(kind="log_rule", key="more", value=b"[]")
    assert await after(more, Records(records=[less, wrong])) == ["error"]
    capsys.readouterr()
