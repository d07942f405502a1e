"""Contains one element's fault: work that is done for many goes on for the others when it fails for one.

A frame speaks of many consumers, a tick of many queues, a change of many listeners. What the code for one of them
raises is logged with what to do, and reported to its client in the protocol's words; it ends no loop, no stream and
no process. `for_each` is for what is done once for a batch, a request or a consumer. Where every message passes, a
`try` around the loop's body and `contained` in its `except` do the same and cost nothing while all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog

from services.common.errors import BrokerError, InternalError

log = structlog.get_logger()

T = TypeVar("T")

REPORT = "this is a fault of Hopline's: report it with these lines; nothing else is held up by it"


def contained(what: str, fault: Exception, *, do: str = REPORT, **concerns: object) -> BrokerError:
    """Logs what failed, for whom, and what to `do`; gives the error to report to the client concerned."""
    if isinstance(fault, BrokerError):
        about = concerns if do is REPORT else {"do": do, **concerns}  # what a broker refuses is no fault of ours
        log.warning("failed, and the rest goes on", what=what, reason=fault.text, **about)
        return fault
    log.error("failed, and the rest goes on", what=what, do=do, exc_info=fault, **concerns)
    return InternalError(f"internal error: {type(fault).__name__}: {fault}")


def for_each(
    what: str,
    elements: Iterable[T],
    action: Callable[[T], object],
    tell: Callable[[T, BrokerError], object] | None = None,
    *,
    do: str = REPORT,
) -> None:
    """Carries `action` out for each element; calls `tell` for one that fails, and goes on with the others."""
    for element in elements:
        try:
            action(element)
        except Exception as fault:  # noqa: BLE001 - whatever the fault, it is this element's
            error = contained(what, fault, do=do)
            if tell:
                _tell(what, element, error, tell)


def by_itself(what: str, action: Callable[[], object], *, do: str = REPORT) -> None:
    """Carries one action out and contains its fault, as the work that follows must be done in any case."""
    try:
        action()
    except Exception as fault:  # noqa: BLE001 - as above
        contained(what, fault, do=do)


def _tell(what: str, element: T, error: BrokerError, tell: Callable[[T, BrokerError], object]) -> None:
    try:
        tell(element, error)
    except Exception as fault:  # noqa: BLE001 - as above
        contained(f"telling that {what} failed", fault)
