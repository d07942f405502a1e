"""Which lines a logger takes."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from services.mgmt.loggers import choosing
from services.mgmt.loggers.choosing import Choice, compiled
from services.mgmt.loggers.records import BY_WHOSE, LoggerRecord, RuleRecord
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line


def line(**said: Any) -> Line:
    return Line(**{"level": "INFO", "logger": "services.common.bus", "service": "gateway", "text": "x", **said})


def choice(*rules: RuleRecord, host: str = "", **said: Any) -> Choice:
    named = {str(number): rule for number, rule in enumerate(rules)}
    return Choice(LoggerRecord(type="Memory", attributes={}, **said), host, named)


@pytest.mark.parametrize(
    ("logger", "level", "taken"),
    [
        ("ROOT", "INFO", True),
        ("ROOT", "WARN", False),
        ("ROOT", "OFF", False),
        ("services.gateway.*", "ALL", True),
        ("services.queue.*", "ALL", False),
        ("services.common.bus", "INFO", True),
    ],
)
def test_by_name_and_level(logger: str, level: Any, taken: bool) -> None:
    """Of a module, or of the process in which it is."""
    assert choice(RuleRecord(logger=logger, level=level)).takes(line()) is taken
    assert choice(RuleRecord(logger="none", level="ALL"), RuleRecord(logger=logger, level=level)).takes(line()) is taken


def test_by_whose() -> None:
    """Lines of a user, of a connection; not of nobody."""
    rule = RuleRecord(logger="ROOT", level="INFO", type=BY_WHOSE, username="gu.*", connection="1\\..*")
    mine = choice(rule)
    assert mine.takes(line(user="guest", connection="1.7"))
    assert not mine.takes(line(user="guest", connection="2.7"))
    assert not mine.takes(line(user="other", connection="1.7"))
    assert not mine.takes(line())


def test_an_expression_that_takes_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes nothing, and is not tried with each line, until it is changed; that is said, once."""
    rule = RuleRecord(logger="ROOT", level="INFO", type=BY_WHOSE, username="(a|aa)+$")
    slow = choice(rule)
    monkeypatch.setattr(
        choosing, "log", structlog.get_logger()
    )  # the module's may have been used as services set it up
    with structlog.testing.capture_logs() as told:
        assert not slow.takes(line(user="a" * 60 + "!"))
        assert not slow.takes(line(user="a"))
    assert [(each["log_level"], each["rule"]) for each in told] == [("warning", "0")]
    assert "until it is changed" in slow.trouble_of("0")
    record = LoggerRecord(type="Memory", attributes={})
    same, changed = Choice(record, "", {"0": rule}, slow), rule.model_copy(update={"username": "a+"})
    assert not same.takes(line(user="a"))
    assert same.trouble_of("0")
    again = Choice(record, "", {"0": changed}, same)
    assert again.takes(line(user="a"))
    assert not again.trouble_of("0")


def test_no_expression() -> None:
    """Is refused when it is set."""
    with pytest.raises(IllegalConfiguration, match="attribute 'username'"):
        compiled("username", "(")


def test_virtual_hosts() -> None:
    """One of a virtual host takes what says that it is about it; one of the broker may leave those out."""
    everything = RuleRecord(logger="ROOT", level="ALL")
    assert choice(everything, host="/").takes(line(virtual_host="/"))
    assert not choice(everything, host="/").takes(line(virtual_host="other"))
    assert not choice(everything, host="/").takes(line())
    assert choice(everything).takes(line(virtual_host="/"))
    assert not choice(everything, without_hosts=True).takes(line(virtual_host="/"))
    assert choice(everything, without_hosts=True).takes(line())
