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
