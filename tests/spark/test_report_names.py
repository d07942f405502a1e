"""Names in the report: clients choose them, and names come again in other virtual hosts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spark.report.page import page
from spark.report.results import Found


def _page(name: str, **tables: list[dict[str, Any]]) -> str:
    read = {"stages": {"files": 1, "rows": 2, "bytes": 3, "refused": []}}
    return page({name: Found(name, tables, {"ledger": "here", "inputs": read})})


@pytest.mark.parametrize(
    "queue", ["shop-order new", "task-items Tx", "2026-11-26T", "1234-56-78T90", "2026-13-45 work"]
)
def test_what_looks_like_a_time(queue: str) -> None:
    """Is a name all the same, and shown as it is; a time is told in words."""
    text = _page("of-a-plugin", things=[{"queue": queue, "time": "2026-01-31T22:50:00.000001"}])
    assert f"<td>{queue}</td><td>2026-01-31 22:50:00</td>" in text


def _rows(**facts: object) -> list[dict[str, Any]]:
    return [{"virtual_host": host, **facts} for host in ("/", "b")]


_TIMES = {"messages": 1, "p50_us": 1, "p95_us": 2, "p99_us": 3, "max_us": 4}
_LAG = {"enqueued": 9, "backlog": 0, "greatest_backlog": 1, "growth_per_second": 0.0}
_WAITS = {"wait_p50_us": 1, "wait_p95_us": 2, "wait_max_us": 3}


@pytest.mark.parametrize(
    ("analysis", "tables"),
    [
        ("audit", {"fates": _rows(queue="work", fate="settled", messages=1)}),
        ("latency", {"waits": _rows(queue="work", **_TIMES)}),
        ("lag", {"queues": _rows(queue="work", **_LAG, **_WAITS)}),
        ("redeliveries", {"chains": _rows(queue="work", attempts=2, messages=1)}),
    ],
)
def test_queues_of_one_name(analysis: str, tables: dict[str, list[dict[str, Any]]]) -> None:
    """Are two bars, and it is said which is in another virtual host."""
    labels = set(re.findall(r"<text [^>]*>([\w ]*work)<", _page(analysis, **tables)))
    assert labels == {"work", "b work"}


def test_exchanges_of_one_name() -> None:
    """Are two in the graph: what goes to one does not come to queues of the other."""
    facts = {"messages": 1, "errors": 0, "p95_us": 1}
    published = _rows(kind="publish", source="shop", target="orders", **facts)
    routed = _rows(kind="route", source="orders", target="work", **facts)
    text = _page("dependencies", edges=published + routed)
    told = set(re.findall(r"<title>([^<:]* → [^<:]*):", text))
    assert told == {"shop → orders", "shop → b orders", "orders → work", "b orders → b work"}
