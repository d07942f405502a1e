"""One element's fault is its own."""

from __future__ import annotations

from structlog.testing import capture_logs

from services.common.containment import by_itself, for_each
from services.common.errors import BrokerError, InternalError, NotFound


def _fail(number: int) -> None:
    if number == 1:
        raise ZeroDivisionError("one")
    if number == 2:
        raise NotFound("two")


def test_the_others_have_their_turn() -> None:
    """Every element has its turn; those that fail are told why, in the protocol's words."""
    seen: list[int] = []
    told: dict[int, BrokerError] = {}

    def act(number: int) -> None:
        seen.append(number)
        _fail(number)

    with capture_logs() as logged:
        for_each("counting", [0, 1, 2, 3], act, told.__setitem__)
    assert seen == [0, 1, 2, 3]
    assert {number: type(error) for number, error in told.items()} == {1: InternalError, 2: NotFound}
    assert [(each["what"], each["log_level"], "do" in each) for each in logged] == [
        ("counting", "error", True),
        ("counting", "warning", False),
    ]


def test_what_to_do_is_said_of_what_is_refused_too() -> None:
    """Where whoever contains it knows; of what is no fault of ours nothing is to be reported."""
    with capture_logs() as logged:
        by_itself("counting", lambda: _fail(2), do="count again")
        by_itself("counting", lambda: _fail(2))
    assert [each.get("do") for each in logged] == ["count again", None]


def test_telling_may_fail_too() -> None:
    """A client that cannot even be told of its fault does not stop the others."""
    seen: list[int] = []

    def tell(_number: int, _error: BrokerError) -> None:
        raise ValueError("nobody hears")

    with capture_logs():
        for_each("counting", [1, 3], lambda number: (_fail(number), seen.append(number)), tell)
        by_itself("failing", lambda: _fail(1))
    assert seen == [3]
