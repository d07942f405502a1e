"""What a consumer wants of a queue: Broker-J's arguments of basic.consume, and what other protocols have instead."""

from __future__ import annotations

from typing import Final

from services.common.arguments import filters, queue
from services.common.arguments.reading import said
from services.common.compiling import Compiling
from services.common.errors import PreconditionFailed, WrongSelector
from services.common.message import arguments
from services.common.selectors.selector import InvalidSelector, said_now
from services.gateway.vocabulary import Bind, Consume

SELECTOR: Final = "x-filter-jms-selector"
NO_CONSUME: Final = "x-filter-no-consume"
NO_LOCAL: Final = "x-qpid-no-local"
REPLAY: Final = filters.REPLAY


async def selector_of(request: Consume, compiling: Compiling) -> str:
    """Which messages it wants, "": whatever is next. Raises PreconditionFailed for what is no selector (JMS 3.8.1)."""
    text = request.selector or request.arguments.get(SELECTOR, "")
    if not isinstance(text, str):
        raise PreconditionFailed(f"{SELECTOR} must be text, not {text!r}")
    if not text.strip():
        return ""
    try:
        return (await compiling.compiled(text, said_now)).text
    except InvalidSelector as error:
        what = f"the selector {text!r}" if request.selector else f"{SELECTOR}: {text!r}"
        raise WrongSelector(f"{what} is none: {error}") from None


async def check_binding(request: Bind, compiling: Compiling) -> None:
    """Raises PreconditionFailed for a selector that is none. The router checks it, too, and has not to for most."""
    text = request.arguments.get(SELECTOR)
    if not isinstance(text, str) or not text.strip():
        return
    try:
        await compiling.compiled(text, said_now)
    except InvalidSelector as error:
        raise WrongSelector(f"{SELECTOR} must be a selector, and {text!r} is none: {error}") from None


def browses(request: Consume) -> bool:
    """Whether it sees what waits and takes nothing; a client of Qpid says 1."""
    return request.browse or _is_said(request, NO_CONSUME)


def no_local(request: Consume, declared: bytes) -> bool:
    """Whether it is not given what its own connection publishes (AMQP 0-9-1, 1.8.3.3, no-local); `declared`: what was
    said of its queue, of whose consumers none may be.
    """
    return request.no_local or _is_said(request, NO_LOCAL) or queue.NO_LOCAL.of(said(arguments.load(declared)))


def replay_of(request: Consume, declared: bytes) -> int | None:
    """It wants only what came so many seconds before it, and since; None: all. The shortest of what it says, and its
    queue says of all its consumers (`declared`).
    """
    said_of_all = queue.DEFAULT_REPLAY.of(said(arguments.load(declared)))
    value = request.arguments.get(REPLAY) if request.replay is None else request.replay
    try:
        own = None if value is None else filters.seconds(value)
    except (TypeError, ValueError) as error:
        raise PreconditionFailed(f"{REPLAY}: {error}") from None
    return min((each for each in (own, said_of_all) if each is not None), default=None)


def _is_said(request: Consume, name: str) -> bool:
    value = request.arguments.get(name, False)
    if value not in (True, False):
        raise PreconditionFailed(f"{name} must be true or false, not {value!r}")
    return bool(value)
