from __future__ import annotations

from typing import Any

import pytest

from services.common import plugins
from services.common.message import arguments
from services.common.topology.exchanges.exchange_type import Binding

# For each type: a key and headers, and arguments with which a binding on that key matches such a message.
_MATCHING = {
    "direct": ("a.b", {}, {}),
    "fanout": ("a.b", {}, {}),
    "topic": ("a.b", {}, {}),
    "headers": ("a.b", {"h": 1}, {"x-match": "all", "h": 1}),
}


class Subject:
    """An exchange of one type, with bindings that match `route()` for every type."""

    def __init__(self, name: Any) -> None:
        self.exchange = plugins.load("exchange_types", name)()
        self.key, self.headers, self._arguments = _MATCHING[name]

    def binding(self, destination: Any, **extra: Any) -> Binding:
        return Binding(destination, self.key, arguments.dump(self._arguments | extra))

    def route(self) -> set[Any]:
        return self.exchange.route([self.key], self.headers)


@pytest.fixture(params=plugins.names("exchange_types"))
def subject(request: Any) -> Subject:
    return Subject(request.param)
