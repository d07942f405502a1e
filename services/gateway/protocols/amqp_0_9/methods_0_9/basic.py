"""Class basic: recover-sync is Qpid's, where 0-9-1 has a recover that is answered; in 0-8 as well."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method
from services.gateway.protocols.amqp_0_9.wire import Bit


@method(60, 101)
class RecoverSyncOk(Method):
    pass


@method(60, 102)
class RecoverSync(Method):
    requeue: Bit
