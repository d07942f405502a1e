"""The stages of a message's way, and the words for how and why it reached them."""

from __future__ import annotations

from typing import Final

from services.rpc.ledger_pb2 import COPIED as COPIED_STAGE
from services.rpc.ledger_pb2 import DEAD_LETTERED, TAKEN_OVER, Stage
from services.rpc.ledger_pb2 import HANDED_OVER as HANDED_OVER_STAGE

NAMES: Final = tuple(Stage.Name(number).lower() for number in sorted(Stage.values()))
"""Names of stages in filed rows, by number."""
OF_PARTITIONS: Final = frozenset({TAKEN_OVER, HANDED_OVER_STAGE})
"""Stages without messages: they tell of a partition."""
GOING_ON: Final = frozenset({DEAD_LETTERED, COPIED_STAGE})
"""Stages whose messages have successors, one for one: their uids stay in their order."""

# Outcomes of SETTLED.
ACCEPTED: Final = "accepted"
REJECTED: Final = "rejected"  # also a reason of later stages

# Reasons.
NO_ROUTE: Final = "no_route"
NO_CONSUMERS: Final = "no_consumers"
OVERFLOW: Final = "overflow"
UNAVAILABLE: Final = "unavailable"
NO_EXCHANGE: Final = "no_exchange"
ACCESS_REFUSED: Final = "access_refused"
INVALID: Final = "invalid"
RELEASED: Final = "released"
CONSUMER_GONE: Final = "consumer_gone"
NOT_SENT: Final = "not_sent"
EXPIRED: Final = "expired"
MAXLEN: Final = "maxlen"
MESSAGE_TTL: Final = "message_ttl"
QUEUE_TTL: Final = "queue_ttl"
UNROUTABLE: Final = "unroutable"
PURGED: Final = "purged"
MOVED: Final = "moved"  # to another queue, by hand
COPIED: Final = "copied"  # the same way
REPLACED: Final = "replaced"  # by a newer message with the same key
DUPLICATE: Final = "duplicate"  # of a message with the same id that came lately
QUEUE_DELETED: Final = "queue_deleted"
NO_OWNER: Final = "no_owner"
JOURNAL: Final = "journal"
HELD: Final = "held"
HANDED_OVER: Final = "handed_over"
MANAGED: Final = "managed"  # a request to the management node of its virtual host, which answered it
