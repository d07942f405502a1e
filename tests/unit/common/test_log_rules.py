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
from services.common.log_lines import RECENT
from services.common.log_rules import ALL, BEYOND_KIND, LIBRARIES, OWN, ROOT, LogRule, Taken, of_settings
from services.rpc.store_pb2 import Record, Records


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = structlog.get_config(), logging.getLogger().level
    yield
    structlog.configure(**before[0])
    log.heed([LogRule(logger=ROOT, level="ALL")])
    structlog.contextvars.clear_contextvars()
    logging.getLogger().setLevel(before[1])


def record(name: str, logger: str, level: Any) -> Record:
    return Record(kind="log_rule", key=name, value=LogRule(logger=logger, level=level).to_json())


async def told(*batches: Records) -> AsyncIterator[Records]:
    for batch in batches:
        yield batch


def rule(logger: str, level: Any) -> LogRule:
    return LogRule(logger=logger, level=level)


@pytest.mark.parametrize(
    ("rules", "own", "others"),
    [
        ({}, 20, 30),
        ({"x": rule("services.queue.*", "DEBUG")}, 10, 30),
        ({"x": rule("services.store.*", "DEBUG")}, 20, 30),
        ({"x": rule("services.common.clients.*", "ALL")}, 0, 30),
        ({"x": rule("asyncio", "DEBUG")}, 10, 20),
        ({OWN: rule(ALL, "ERROR")}, 30, 30),
        ({OWN: rule(ALL, "OFF"), LIBRARIES: rule(ROOT, "OFF")}, 99, 99),
        ({LIBRARIES: rule(ROOT, "DEBUG")}, 10, 20),
    ],
)
def test_what_is_taken(rules: dict[str, LogRule], own: int, others: int) -> None:
    """The least that any rule takes, of a queue process; those of the settings are as a record of their name says."""
    taken = Taken({**of_settings("info"), **rules}.values(), "queue")
    assert (taken.own, taken.others) == (own, others)


@pytest.mark.parametrize(
    ("logger", "theirs"),
    [
        (ROOT, {"services.queue.host", "services.common.bus", "asyncio"}),
        ("services.*", {"services.queue.host", "services.common.bus"}),
        ("services.queue.*", {"services.queue.host", "services.common.bus"}),  # all of a process is the process's
        ("services.queue.host", {"services.queue.host"}),
        ("services.queue.ho.*", set()),
        ("services.common.*", {"services.common.bus"}),
        ("asyncio", {"asyncio"}),
    ],
)
def test_whose_lines_a_rule_takes(logger: str, theirs: set[str]) -> None:
    """Of one logger, of all below one, of all; where its level is reached."""
    taken = Taken([rule(logger, "INFO")], "queue")
    names = ("services.queue.host", "services.common.bus", "asyncio")
    assert {name for name in names if taken.takes(20, name, own=name != "asyncio")} == theirs
    assert not any(taken.takes(10, name, own=name != "asyncio") for name in names)


async def test_at_run_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Loggers that have written already heed it; a record that is no rule, or has gone, says nothing."""
    lines = io.StringIO()
    log.configure("queue", "json", "info")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(lines))
    logger = structlog.get_logger()

    async def after(*batches: Records) -> list[str]:
        await apply(told(*batches), "info")
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
    less = record(OWN, ALL, "ERROR"), record(LIBRARIES, ROOT, "ERROR")
    wrong = Record(kind="log_rule", key="more", value=b"[]")
    assert await after(more, Records(records=[*less, wrong])) == ["error"]
    capsys.readouterr()


async def test_for_other_loggers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of their rules takes is kept for them, with whose it is; standard error has no more than before."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    log.configure("queue-7", "json", "warning")
    beyond = Record(kind=BEYOND_KIND, key="x", value=rule(f"{__name__.partition('.')[0]}.*", "DEBUG").to_json())
    libraries = Record(kind=BEYOND_KIND, key="y", value=rule("a.library", "INFO").to_json())
    await apply(told(Records(records=[beyond, libraries], snapshot=True, last=True)), "warning")
    structlog.get_logger().debug("said", user="me", virtual_host="/", count=3)
    logging.getLogger("a.library").info("of a %s", "library")
    logging.getLogger("another").info("nobody wants it")
    own, of_library = RECENT.since(0, 10)
    assert own[2:-1] == ("DEBUG", __name__, "queue", "queue-7", own.text, {"virtual_host": "/", "user": "me"})
    assert own.text == "said count=3 user=me virtual_host=/"
    assert of_library[2:6] == ("INFO", "a.library", "", "queue-7")
    assert capsys.readouterr().err == ""


def test_secrets_of_libraries() -> None:
    """What they tell at DEBUG is taken by no rule: aiosqlite has values of records in it, hpack what headers say."""
    taken = Taken([rule(ROOT, "ALL"), rule("aiosqlite", "DEBUG")], "store")
    assert not taken.takes(10, "aiosqlite", own=False)
    assert taken.takes(20, "aiosqlite", own=False)


def test_lines_are_bounded() -> None:
    """Each is cut, and they take a few MiB together."""
    log.configure("queue", "json", "info")
    for number in range(1000):
        structlog.get_logger().error("x" * 20_000, number=number)
    lines = RECENT.since(0, 2000)
    assert lines[-1].number == 1000
    assert 1 << 20 < sum(len(line.text) for line in lines) <= 4 << 20
    assert max(len(line.text) for line in lines) < 10_000
    log.configure("queue", "json", "info")
