"""What became of a message, in no protocol's words: each engine has a table between these and its own.

They are AMQP 1.0's outcomes (part 3, section 3.4), since no protocol has more of them. The broker says them of what was
published, and a client of what was delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.common.errors import BrokerError


@dataclass(frozen=True, slots=True)
class Accepted:
    """It is done with: of a publish, safe in every queue that is to have it."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """It is not wanted as it is; the error says why, where that is known. Of a delivery: dead-letter it, or drop it."""

    error: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """Nothing was done with it, and nothing is said against it: it may be sent again. Why, if that is known.

    Of a delivery: back to its queue as if it had not been delivered.
    """

    error: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class Modified:
    """Back to its queue. `failed`: that was an attempt; `undeliverable`: not for this link again.

    `annotations` are to be added to the message, as `services/common/message/amqp_1_0/added.py` writes them.
    """

    failed: bool = False
    undeliverable: bool = False
    annotations: bytes = b""


@dataclass(frozen=True, slots=True)
class Unsent:
    """An engine says so: it never went to its client, and has used no credit."""


PublishOutcome: TypeAlias = Accepted | Rejected | Released
"""Of a publish, which the broker tells its publisher."""

DeliveryOutcome: TypeAlias = Accepted | Rejected | Released | Modified | Unsent
"""Of a delivery, which an engine tells the broker."""

ACCEPTED: Final = Accepted()
REJECTED: Final = Rejected()
RELEASED: Final = Released()
FAILED: Final = Modified(failed=True)
UNSENT: Final = Unsent()
"""Those of which no more is said."""


class PublishDisposition(NamedTuple):
    """What became of the messages `first`..`last` of an inbound link, by the numbers that its engine gave them."""

    link: int
    first: int
    last: int
    outcome: PublishOutcome
