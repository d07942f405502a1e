"""Lines in Logback's words."""

from __future__ import annotations

import pytest

from services.mgmt.loggers.layout import DEFAULT, Layout
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

LINE = Line(
    time_us=1_764_216_000_123_456,
    level="WARN",
    logger="services.gateway.connections.opening",
    service="gateway",
    instance="gateway",
    text="said",
)


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (DEFAULT, "2025-11-27T04:00:00,123Z WARN  [gateway] (s.g.c.opening) - said\n"),
        ("%d %p %c: %m", "2025-11-27 04:00:00,123 WARN services.gateway.connections.opening: said"),
        ("%d{HH:mm}|%6level|%-6level|%logger{30}", "04:00|  WARN|WARN  |s.gateway.connections.opening"),
        ("100%% \\(%msg\\)", "100% (said)"),
        ("%date{ISO8601}", "2025-11-27 04:00:00,123"),
    ],
)
def test_patterns(pattern: str, written: str) -> None:
    """What each word stands for, as wide as it is wanted."""
    assert Layout(pattern)(LINE) == written


@pytest.mark.parametrize("pattern", ["%mdc", "%d{YY}", "%d{dd-MMM}"])
def test_unknown_words(pattern: str) -> None:
    """Are refused, and never written as they are."""
    with pytest.raises(IllegalConfiguration, match="attribute 'layout'"):
        Layout(pattern)
