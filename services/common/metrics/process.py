"""Metrics of every process: from the operating system, and of what it could not publish."""

from __future__ import annotations

import resource
from errno import EMFILE
from pathlib import Path
from typing import TYPE_CHECKING, Final

from services.common.audit.entry import DENIED, REFUSED, SIGNED_IN
from services.common.clock import epoch_ns
from services.common.heap import processor_seconds, resident
from services.common.metrics.catalogue import clients as c
from services.common.metrics.catalogue import processes as p

if TYPE_CHECKING:
    from services.common.audit.audit import Audit
    from services.common.bus.event_bus import EventBus
    from services.common.ledger.ledger import Ledger
    from services.common.metrics.meters import Meters
    from services.common.telemetry.tracer import Tracer

_SELF: Final = Path("/proc/self")


def measure_process(meters: Meters) -> None:
    """The operating system's figures for this process."""
    started = epoch_ns() / 1e9
    meters.number(p.CPU, processor_seconds)
    meters.number(p.RESIDENT, resident)
    meters.number(p.FILES, _files)
    meters.number(p.FILES_LIMIT, _most_files)
    meters.number(p.STARTED, lambda: started)


def measure_ledger(meters: Meters, ledger: Ledger) -> None:
    """The process's part of the ledger."""
    meters.number(p.ROWS, lambda: ledger.written)
    meters.number(p.ROWS_DROPPED, lambda: ledger.given_up)


def measure_told(meters: Meters, bus: EventBus, tracer: Tracer) -> None:
    """Events and spans."""
    meters.number(p.EVENTS_DROPPED, lambda: bus.missed)
    meters.number(p.SPANS, lambda: tracer.counts["ended"])
    meters.number(p.SPANS_DROPPED, lambda: tracer.counts["dropped"])


def measure_sign_ins(meters: Meters, audit: Audit) -> None:
    """Sign-ins, refused sign-ins, and denied requests."""
    happened, outcomes = audit.happened, {SIGNED_IN: "signed_in", REFUSED: "refused"}
    meters.read(c.SIGN_INS, lambda: [((word,), happened[event]) for event, word in outcomes.items()])
    meters.number(c.DENIED, lambda: happened[DENIED])


def _files() -> int:
    try:
        return sum(1 for _ in (_SELF / "fd").iterdir())
    except OSError as error:
        if error.errno != EMFILE:
            raise
        return _most_files()  # to count them takes one more


def _most_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
