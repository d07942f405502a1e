"""Class tx."""

from __future__ import annotations

from services.gateway.protocols.amqp_0_9.method import Method, method


@method(90, 10)
class Select(Method):
    pass


@method(90, 11)
class SelectOk(Method):
    pass


@method(90, 20)
class Commit(Method):
    pass


@method(90, 21)
class CommitOk(Method):
    pass


@method(90, 30)
class Rollback(Method):
    pass


@method(90, 31)
class RollbackOk(Method):
    pass
