"""Arguments as RabbitMQ's JSON has them, where a table has what JSON has not."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from services.mgmt.rabbitmq.plain import plain, told


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("1.5"), 1.5),
        (Decimal("1E+400"), "1E+400"),
        (Decimal("-1E+99999"), "-1E+99999"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        ({b"a": [b"\xff"]}, {"a": ["/w=="]}),
    ],
)
def test_what_json_has_no_number_for(value: Any, shown: Any) -> None:
    """Is told as a text: one queue that has it, which may be on record from before, hides none of the others."""
    assert told(value) == shown
    json.dumps(told(value), allow_nan=False)


def test_a_decimal_on_record() -> None:
    """The same of a record."""
    assert plain('{"x": {"!decimal": "1E+400"}}') == {"x": "1E+400"}
