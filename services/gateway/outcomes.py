"""What became of a message, in no protocol's words: each engine has a table between these and its own.

They are AMQP 1.0's outcomes (part 3, section 3.4), since no protocol has more of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.common.errors import BrokerError


@dataclass(frozen=True, slots=True)
class Accepted:
    """It is done with: of a publish, safe in every queue that is to have it."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """It is not wanted as it is; the error says why."""

    error: BrokerError


@dataclass(frozen=True, slots=True)
class Released:
    """Nothing was done with it, and nothing is said against it: it may be sent again. Why, if that is known."""

    error: BrokerError | None = None


PublishOutcome: TypeAlias = Accepted | Rejected | Released
"""Of a publish, which the broker tells its publisher."""

ACCEPTED: Final = Accepted()


class Outcome(Enum):
    """What a client says of deliveries."""

    ACCEPT = "accept"
    RELEASE = "release"  # requeue: that was an attempt
    RETURN = "return"  # requeue as if it had not been delivered
    UNSENT = "unsent"  # the same, of the engine: it was not sent, and has used no credit
    REJECT = "reject"  # do not requeue: dead-letter or drop


class Published(NamedTuple):
    """What became of the messages `first`..`last` of an inbound link, by the numbers that its engine gave them."""

    link: int
    first: int
    last: int
    outcome: PublishOutcome
