"""Each front has a table of what errors are called there: one that is of another kind is called as that is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.common.errors import BrokerError, Overtaken, PreconditionFailed, Unavailable, WrongPeer, of_kind
from services.gateway.protocols.amqp_0_9.reply_codes import reply_code
from services.gateway.protocols.amqp_1_0 import conditions
from services.mgmt.node.exchanged import Reply
from services.mgmt.rest import failures
from services.mgmt.rest.model.answers import Route as OfModel
from services.mgmt.rest.rabbitmq.answers import Route as OfRabbitMQ

_FRONTS: dict[str, Callable[[BrokerError], object]] = {
    "AMQP 0-9": reply_code,
    "AMQP 1.0": lambda error: conditions.told(error).condition,
    "the management node": lambda error: Reply.refusal(error).status,
    "/api": failures.status_of,
    "RabbitMQ's paths": lambda error: OfRabbitMQ.answers[BrokerError](error).status_code,
    "/api/latest": lambda error: OfModel.answers[BrokerError](error).status_code,
}


@pytest.mark.parametrize("front", _FRONTS)
def test_a_kind_of_an_error_is_called_as_that(front: str) -> None:
    """A client that tries again where a service is away does so where another is at its address, too."""
    called = _FRONTS[front]
    assert called(WrongPeer("x")) == called(Unavailable("x"))
    assert called(Overtaken("x")) == called(PreconditionFailed("x"))


def test_rabbitmqs_paths_say_503_while_a_router_is_replaced() -> None:
    """Not 400, at which its tools give up."""
    assert _FRONTS["RabbitMQ's paths"](WrongPeer("x")) == 503


def test_the_nearest_kind_counts() -> None:
    """Its own before that of which it is one."""
    table: dict[type[BrokerError], int] = {BrokerError: 1, Unavailable: 2, WrongPeer: 3}
    assert [of_kind(table, kind("x"), 0) for kind in (PreconditionFailed, Unavailable, WrongPeer)] == [1, 2, 3]
    assert of_kind({Unavailable: 2}, BrokerError("x"), 0) == 0
