"""Selectors of consumers, when many come at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from services.common.errors import PreconditionFailed
from services.common.selectors.selector import Selector, selector
from services.gateway.operations import choosing
from services.gateway.vocabulary import Consume


def _consume(number: int) -> Consume:
    text = " OR ".join(f"a{number} = {each}" for each in range(100))
    return Consume(1, queue="q", tag="", arguments={choosing.SELECTOR: text})


def _counting(at: Callable[[], int], turns: list[int]) -> Callable[[str], Selector]:
    def compiled(text: str) -> Selector:
        turns.append(at())
        return selector(text)

    return compiled


async def test_one_is_compiled_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a turn of the loop: a client with hundreds of channels has others wait for one selector, not for all."""
    turn, compiled = 0, list[int]()

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(choosing, "said_now", _counting(lambda: turn, compiled))
    lock, beside = asyncio.Lock(), asyncio.ensure_future(others())
    await asyncio.gather(*(choosing.compile_in_turn(_consume(number), lock) for number in range(30)))
    beside.cancel()
    assert len(set(compiled)) == 30


async def test_what_is_no_selector_leaves_the_turn_to_others() -> None:
    """It is refused, and the next one is compiled."""
    lock = asyncio.Lock()
    wrong = Consume(1, queue="q", tag="", arguments={choosing.SELECTOR: "a = 1 OR " * 100})
    with pytest.raises(PreconditionFailed, match="it ends too early"):
        await choosing.compile_in_turn(wrong, lock)
    await choosing.compile_in_turn(_consume(1), lock)
