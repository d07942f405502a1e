"""What mgmt measures itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.metrics.catalogue.mgmt import FILED, HEALTHY, HTTP_CONNECTIONS, HTTP_ENDED, HTTP_LIMIT
from services.common.metrics.process import measure_process, measure_sign_ins
from services.mgmt.http.doors import CLOSED, REFUSED

if TYPE_CHECKING:
    from services.common.audit.audit import Audit
    from services.common.metrics.meters import Meters
    from services.mgmt.http.doors import Doors
    from services.mgmt.ledger.filer import Filer
    from services.mgmt.stack_health import StackHealth


def measure_mgmt(meters: Meters, audit: Audit, filer: Filer) -> None:
    """This process, and whether the record of messages is filed."""
    measure_process(meters)
    measure_sign_ins(meters, audit)
    meters.number(FILED, lambda: not filer.trouble)


def measure_doors(meters: Meters, doors: Doors) -> None:
    """Of HTTP."""
    meters.number(HTTP_CONNECTIONS, lambda: doors.inside)
    meters.number(HTTP_LIMIT, lambda: doors.limit)
    meters.read(HTTP_ENDED, lambda: [((outcome,), doors.ended[outcome]) for outcome in (REFUSED, CLOSED)])


def measure_health(meters: Meters, health: StackHealth) -> None:
    """Of the stack: found out at each request for metrics."""
    healthy = False

    async def survey() -> None:
        nonlocal healthy
        healthy = (await health.report()).ok

    meters.surveys.append(survey)
    meters.number(HEALTHY, lambda: healthy)
