"""Lists as they are asked for, where a whole broker says no more about them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.common.errors import SyntaxFault
from services.mgmt.rest.rabbitmq import listing
from services.mgmt.rest.rabbitmq.listing import Wanted, listed

ROWS = [{"name": f"q{number}", "arguments": {"n": {"deep": 9 - number}}} for number in range(10)]


def test_a_slow_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    """All names together may take a moment, not each of them: nobody else is served meanwhile."""
    clock = iter(range(100))
    monkeypatch.setattr(listing, "monotonic", lambda: next(clock) / 10)
    with pytest.raises(SyntaxFault, match="name"):
        listed(ROWS, Wanted(page=1, name="q", use_regex=True))


def test_only_a_page_is_told() -> None:
    """Also where it is in the order of something inside of a column that can be had without."""
    told = []

    def tell(row: dict[str, Any]) -> dict[str, Any]:
        told.append(row["name"])
        return dict(row)

    wanted = Wanted(page=1, page_size=2, sort="arguments.n.deep", columns="name")
    answer = json.loads(listed(ROWS, wanted, tell, {"arguments": lambda row: row["arguments"]}).body)
    assert [each["name"] for each in answer["items"]] == told == ["q9", "q8"]
