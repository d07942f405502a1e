from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from services.common.clients.parting import Partings
from services.common.clients.partition_table import Owner
from services.common.clients.queue_link import QueueLink


class _Link:
    member = "queue-1-ab"
    address = "unix:q"


class _Attempt:
    messages = (b"a", b"b")


LINK, OTHER = cast("QueueLink", _Link()), "queue-2-cd"
ATTEMPTS = cast("list[Any]", [_Attempt(), _Attempt()])


@pytest.fixture
def told() -> Iterator[list[Any]]:
    """What is logged."""
    with capture_logs() as told:
        yield cast("list[Any]", told)


@pytest.fixture
def partings() -> Partings:
    """Of a table in which the process has two partitions of three."""
    partings = Partings()
    partings.know({0: Owner(LINK.member, "a", 1), 1: Owner(LINK.member, "a", 1), 2: Owner(OTHER, "b", 1)})
    return partings


def test_a_loss(partings: Partings, told: list[Any]) -> None:
    """A process that ends with partitions is lost: a warning says how many, and how much is sent again."""
    partings.handed_over(LINK, [1])
    partings.tell(LINK, ATTEMPTS)
    (line,) = told
    assert (line["log_level"], line["partitions"], line["unconfirmed"]) == ("warning", 1, 4)


def test_an_orderly_leave(partings: Partings, told: list[Any]) -> None:
    """One that has handed over all that it had has left, whether the lease table says so already or not."""
    partings.handed_over(LINK, [0])
    partings.know({1: Owner(LINK.member, "a", 1), 0: Owner(OTHER, "b", 2), 2: Owner(OTHER, "b", 1)})
    partings.handed_over(LINK, [1])
    partings.tell(LINK, [])
    assert [(line["log_level"], line["event"][:18]) for line in told] == [("info", "queue process left")]


def test_what_came_back(partings: Partings, told: list[Any]) -> None:
    """A partition that it has again, in another term of office, is not handed over any more."""
    partings.handed_over(LINK, [0, 1])
    partings.know({0: Owner(LINK.member, "a", 3), 2: Owner(OTHER, "b", 1)})
    partings.tell(LINK, [])
    assert [(line["log_level"], line["partitions"]) for line in told] == [("warning", 1)]


def test_our_own_end(partings: Partings, told: list[Any]) -> None:
    """When this process ends its links, no queue process counts as lost."""
    partings.leaving = True
    partings.tell(LINK, ATTEMPTS)
    assert [line["log_level"] for line in told] == ["debug"]
