from __future__ import annotations

import pytest

from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.exchanges.fanout import FanoutExchange


@pytest.mark.specification("AMQP 0-9-1, 3.1.3.2")
def test_key_does_not_matter() -> None:
    """A fanout exchange routes to all, with any keys of message and bindings."""
    exchange = FanoutExchange()
    exchange.bind(Binding(1, "a"))
    exchange.bind(Binding("e", "b"))
    assert exchange.route(["c"], {}) == {1, "e"}
