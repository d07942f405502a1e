"""RabbitMQ's routes are made when somebody asks for one that begins with the same word."""

from __future__ import annotations

import re
from typing import Any
from unittest.mock import Mock

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from services.mgmt.rest.basic import Doors
from services.mgmt.rest.late import Late
from services.mgmt.rest.rabbitmq.paths import OURS, first_word
from services.mgmt.rest.rabbitmq.routes import rabbitmq_routes


@pytest.fixture
def lates() -> list[Late]:
    return list(rabbitmq_routes(Doors(Mock(), Mock()), Mock(), Mock()))


def _asked(path: str, method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "method": method, "path": path, "root_path": ""}


def _made(late: Late) -> bool:
    return "routes" in vars(late)


def test_every_one_is_found(lates: list[Late]) -> None:
    """By a path of its own, each method of it; and no word of RabbitMQ's is without any."""
    words = set()
    for late in lates:
        for route in late.routes:
            assert isinstance(route, APIRoute)
            path = re.sub(r"{.*?}", "1", route.path)
            words.add(first_word(path))
            assert all(late.matches(_asked(path, method))[0] is Match.FULL for method in route.methods), path
    assert words == OURS


def test_what_is_not_asked_for_is_not_made(lates: list[Late]) -> None:
    """Who asks for queues has routes of queues made, and of messages, some of which are below queues."""
    assert Match.FULL in {late.matches(_asked("/api/queues/%2F/work"))[0] for late in lates}
    made = {
        first_word(route.path) for late in lates if _made(late) for route in late.routes if isinstance(route, APIRoute)
    }
    assert made == {"queues", "exchanges"}
    assert sum(map(_made, lates)) == 3
