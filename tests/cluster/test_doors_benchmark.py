"""`make doors` measures what it says: its users may sign in."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from benchmarks.doors.good import sign_ins
from benchmarks.doors.guesses import add_users
from benchmarks.failure import BenchmarkError
from benchmarks.wire import Address
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from tests.support.stack import Stack


def test_right_ones_sign_in(stack: Stack) -> None:
    """Those who say the right password have a channel, once gateways know what they may do."""
    asyncio.run(add_users(stack.data, ["right"], "secret"))

    def may_sign_in() -> list[float]:
        with suppress(BenchmarkError):
            return sign_ins(Address(stack.address.host, stack.address.port), [("right", "secret")], every=0)
        return []

    wait_until(may_sign_in, 5, "sign-in of one who is right")
