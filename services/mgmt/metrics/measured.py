"""What mgmt measures itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.metrics.catalogue.mgmt import FILED, HEALTHY
from services.common.metrics.process import measure_process, measure_sign_ins

if TYPE_CHECKING:
    from services.common.audit.audit import Audit
    from services.common.metrics.meters import Meters
    from services.mgmt.ledger.filer import Filer
    from services.mgmt.stack_health import StackHealth


def measure_mgmt(meters: Meters, audit: Audit, filer: Filer) -> None:
    """This process, and whether the record of messages is filed."""
    measure_process(meters)
    measure_sign_ins(meters, audit)
    meters.number(FILED, lambda: not filer.trouble)


def measure_health(meters: Meters, health: StackHealth) -> None:
    """Of the stack: found out whenever somebody asks for metrics."""
    healthy = False

    async def survey() -> None:
        nonlocal healthy
        healthy = (await health.report()).ok

    meters.surveys.append(survey)
    meters.number(HEALTHY, lambda: healthy)
