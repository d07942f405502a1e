"""What is said of transactions (part 4, section 4.5)."""

from __future__ import annotations

from typing import Final

from services.common.message.amqp_1_0.composite import Anything, Binary, Boolean, Composite, Symbols, composite


@composite(0x30, "coordinator")
class Coordinator(Composite):
    """The target of a link by which transactions are declared and discharged."""

    capabilities: Symbols | None = None


@composite(0x31, "declare")
class Declare(Composite):
    global_id: Anything | None = None


@composite(0x32, "discharge")
class Discharge(Composite):
    txn_id: Binary
    fail: Boolean | None = None


@composite(0x33, "declared")
class Declared(Composite):
    txn_id: Binary


@composite(0x34, "transactional-state")
class TransactionalState(Composite):
    txn_id: Binary
    outcome: Anything | None = None


CAPABILITIES: Final = ("amqp:local-transactions", "amqp:multi-txns-per-ssn")
"""What is offered of transactions (4.5.7): those of one session, any number of them."""
