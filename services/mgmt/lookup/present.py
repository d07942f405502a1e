"""What the broker itself can be asked, as it runs, about what the record does not tell yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from services.common.trace import IN_FLIGHT, UNKNOWN, UNSETTLED, WAITING, Copy, Journey, Message, Step

_CLAIM_NOTHING: Final = {"", IN_FLIGHT, UNKNOWN}
_GO_ON: Final = {WAITING, UNSETTLED}
_PLACED: Final = {"enqueued", "recovered"}


async def _is_there() -> str:
    return ""


async def _none_is(_instances: Collection[str]) -> Collection[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Present:
    """`trouble` says why nothing can be told to the record now; `silent` who of some processes does not answer.

    `gone` are gateways that are, without having told all: a death is on record half a minute later only.
    """

    trouble: Callable[[], Awaitable[str]] = _is_there
    silent: Callable[[Collection[str]], Awaitable[Collection[str]]] = _none_is
    gone: Callable[[], Collection[str]] = frozenset


def claims(journeys: Sequence[Journey]) -> bool:
    """Whether an answer says that something is not so, or goes on: nothing that is not on record yet may be amiss."""
    copies = [copy for journey in journeys for message in journey.messages for copy in message.copies]
    return not journeys or any(copy.fate not in _CLAIM_NOTHING for copy in copies)


def owners(journeys: Sequence[Journey]) -> set[str]:
    """The queue processes that have copies that go on."""
    each = (_owner(message, copy) for journey in journeys for message in journey.messages for copy in message.copies)
    return {owner for owner in each if owner}


def unanswered(journeys: Sequence[Journey], silent: Collection[str]) -> list[Journey]:
    """The same ways. What a process has that does not answer is unknown, until its death is on record.

    But for what is on disk, and no consumer was asked: that waits for the next owner.
    """
    return [
        each.model_copy(update={"messages": [_of_message(message, silent) for message in each.messages]})
        for each in journeys
    ]


def _of_message(message: Message, silent: Collection[str]) -> Message:
    return message.model_copy(update={"copies": [_of(message, copy, silent) for copy in message.copies]})


def _of(message: Message, copy: Copy, silent: Collection[str]) -> Copy:
    owner = _owner(message, copy)
    stages = {step.stage for step in _steps(message, copy)}
    if owner not in silent or ("persisted" in stages and not stages & {"delivered", "sent"}):
        return copy
    return copy.model_copy(update={"fate": UNKNOWN, "silent": owner})


def _owner(message: Message, copy: Copy) -> str:
    placed = [step for step in _steps(message, copy) if step.stage in _PLACED]
    if copy.fate not in _GO_ON or not placed:
        return ""
    return max(placed, key=lambda step: step.epoch or 0).instance


def _steps(message: Message, copy: Copy) -> list[Step]:
    place = copy.virtual_host, copy.queue
    return [step for step in message.steps if (step.virtual_host, step.queue) == place]
