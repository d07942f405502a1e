"""Selectors of consumers and bindings, when many come at once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from services.common.compiling import Compiling
from services.common.errors import PreconditionFailed
from services.common.selectors.selector import Selector, selector
from services.gateway.operations import choosing
from services.gateway.vocabulary import Bind, Consume

_NEW = itertools.count(100)  # no test finds one that another has compiled


def _text(number: int) -> str:
    return " OR ".join(f"a{number} = {each}" for each in range(100))


def _in_argument(text: str) -> Consume:
    return Consume(1, queue="q", tag="", arguments={choosing.SELECTOR: text})


def _in_filter(text: str) -> Consume:
    """AMQP 1.0's."""
    return Consume(1, queue="q", tag="", selector=text)


async def _of_binding(text: str, compiling: Compiling) -> None:
    bind = Bind(1, "x", "q", to_exchange=False, routing_key="k", arguments={choosing.SELECTOR: text})
    await choosing.check_binding(bind, compiling)


def _of_consumer(said: Callable[[str], Consume]) -> Callable[[str, Compiling], Awaitable[object]]:
    return lambda text, compiling: choosing.selector_of(said(text), compiling)


_EVERY_WAY = pytest.mark.parametrize("compile_one", [_of_consumer(_in_argument), _of_consumer(_in_filter), _of_binding])


def _counting(at: Callable[[], int], turns: list[int]) -> Callable[[str], Selector]:
    def compiled(text: str) -> Selector:
        turns.append(at())
        return selector(text)

    return compiled


@_EVERY_WAY
async def test_one_is_compiled_at_a_time(
    monkeypatch: pytest.MonkeyPatch, compile_one: Callable[[str, Compiling], Awaitable[object]]
) -> None:
    """In a turn of the loop: a client with hundreds of channels has others wait for one selector, not for all."""
    turn, compiled = 0, list[int]()

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(choosing, "said_now", _counting(lambda: turn, compiled))
    compiling, beside = Compiling(), asyncio.ensure_future(others())
    await asyncio.gather(*(compile_one(_text(next(_NEW)), compiling) for _ in range(30)))
    beside.cancel()
    assert len(set(compiled)) == 30


@_EVERY_WAY
async def test_what_is_no_selector_leaves_the_turn_to_others(
    compile_one: Callable[[str, Compiling], Awaitable[object]],
) -> None:
    """It is refused, and the next one is compiled."""
    compiling = Compiling()
    with pytest.raises(PreconditionFailed, match="it ends too early"):
        await compile_one("a = 1 OR " * 100, compiling)
    await compile_one(_text(next(_NEW)), compiling)
