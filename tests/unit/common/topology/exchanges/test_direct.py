from __future__ import annotations

import pytest

from services.common.topology.exchanges.direct import DirectExchange
from services.common.topology.exchanges.exchange_type import Binding


@pytest.mark.specification("AMQP 0-9-1, 3.1.3.1")
def test_key_must_be_equal() -> None:
    """A direct exchange matches the whole key, wildcards are plain text."""
    exchange = DirectExchange()
    exchange.bind(Binding(1, "a.b"))
    exchange.bind(Binding(2, "a.*"))
    assert exchange.route(["a.b"], {}) == {1}
    assert exchange.route(["a.*"], {}) == {2}
    assert exchange.route(["a"], {}) == set()
