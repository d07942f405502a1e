"""What a request looks at: what it tells of, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from services.mgmt.loggers.records import LOGGER_KIND, RULE_KIND, LoggerRecord, RuleRecord, record_of
from services.mgmt.service import Service
from services.mgmt.tree import log_rules
from services.mgmt.tree.category import Source
from services.rpc.store_pb2 import Record
from tests.support.large_tree import asked


@pytest.mark.parametrize(
    ("path", "looks"),
    [
        ("queue?depth=1", False),
        ("virtualhost?depth=1", True),
        ("virtualhostnode?depth=1", False),
        ("virtualhostnode?depth=2", True),
        ("brokerlogger", True),
    ],
)
async def test_files_of_loggers(mgmt: Service, monkeypatch: pytest.MonkeyPatch, path: str, looks: bool) -> None:
    """A disk is asked where loggers are told of."""
    looked = list[bool]()

    async def look() -> None:
        looked.append(True)

    monkeypatch.setattr(mgmt._tree.house.loggers.files, "look", look)
    await asked(mgmt.http_port, f"/api/latest/{path}")
    assert bool(looked) is looks


async def test_what_is_fresh_below_the_broker(mgmt: Service) -> None:
    """All there is, so deep as the tree is."""
    assert mgmt._tree.fresh("broker", 9) == set(Source)


async def test_rules_are_read_once(mgmt: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each change, however many loggers there are and requests; each shows its own as they are then."""
    await asked(mgmt.http_port, "/api/latest/user")
    tree, read = mgmt._tree, list[bytes]()
    rule_in = log_rules.rule_in

    def noted(value: bytes) -> RuleRecord | None:
        read.append(value)
        return rule_in(value)

    monkeypatch.setattr(log_rules, "rule_in", noted)
    mirror = tree.house.mirror
    for logger in ("a", "b"):
        mirror._apply(mirror.tables, _logger(logger))
        for rule in ("one", "two"):
            mirror._apply(mirror.tables, _rule(logger, rule, "INFO"))

    def levels() -> dict[tuple[str, ...], Any]:
        return {each.path: each.value("level") for each in tree.find("brokerloginclusionrule", ["*", "*"])}

    for _ in range(3):
        assert levels().items() >= {("a", "one"): "INFO", ("b", "two"): "INFO"}.items()
    assert len(read) == 4
    mirror._apply(mirror.tables, _rule("a", "one", "WARN"))
    assert levels()["a", "one"] == "WARN"
    assert len(read) == 8


def _logger(name: str) -> Record:
    return record_of(LOGGER_KIND, f'["", "{name}"]', LoggerRecord(type="Memory", attributes={}))


def _rule(logger: str, name: str, level: Any) -> Record:
    return record_of(RULE_KIND, f'["", "{logger}", "{name}"]', RuleRecord(logger="x", level=level))
