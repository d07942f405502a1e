"""Error conditions (part 2, sections 2.8.15 to 2.8.18): which error is which, and how much it ends."""

from __future__ import annotations

from services.common import errors
from services.common.errors import BrokerError, Reach, of_kind
from services.common.message.amqp_1_0.values import Symbol
from services.gateway.protocols.amqp_1_0.performatives import Error


class FramingError(BrokerError):
    """The bytes are no frames: where the next one begins is unknown."""

    reach = Reach.CONNECTION


class WindowViolation(BrokerError):
    reach = Reach.SESSION


class HandleInUse(BrokerError):
    reach = Reach.SESSION


class UnattachedHandle(BrokerError):
    reach = Reach.SESSION


class TransferLimitExceeded(BrokerError):
    """More came than there was credit for."""

    reach = Reach.LINK


class MessageSizeExceeded(BrokerError):
    reach = Reach.LINK


class InvalidField(BrokerError):
    """A field has a value that it must not have here."""

    reach = Reach.LINK


class ResourceDeleted(BrokerError):
    """The node of a link is gone."""

    reach = Reach.LINK


class UnknownTransaction(BrokerError):
    """Part 4, section 4.5.8: what is said of it is said of nothing."""

    reach = Reach.LINK


class RolledBack(BrokerError):
    """A transaction could not be committed."""

    reach = Reach.LINK


class SaidByPeer(BrokerError):
    """What a peer says is wrong: `text` begins with its condition."""


_CONDITIONS: dict[type[BrokerError], str] = {
    errors.NotFound: "amqp:not-found",
    errors.AccessRefused: "amqp:unauthorized-access",
    errors.ResourceLocked: "amqp:resource-locked",
    errors.WrongSelector: "amqp:invalid-field",  # it is a filter's (3.5.8)
    errors.PreconditionFailed: "amqp:precondition-failed",
    errors.NotAllowed: "amqp:not-allowed",
    errors.CommandInvalid: "amqp:illegal-state",
    errors.SyntaxFault: "amqp:decode-error",
    errors.NotImplementedHere: "amqp:not-implemented",
    errors.ResourceError: "amqp:resource-limit-exceeded",
    errors.ConnectionForced: "amqp:connection:forced",
    errors.LinkStolen: "amqp:link:stolen",
    InvalidField: "amqp:invalid-field",
    ResourceDeleted: "amqp:resource-deleted",
    FramingError: "amqp:connection:framing-error",
    WindowViolation: "amqp:session:window-violation",
    HandleInUse: "amqp:session:handle-in-use",
    UnattachedHandle: "amqp:session:unattached-handle",
    TransferLimitExceeded: "amqp:link:transfer-limit-exceeded",
    UnknownTransaction: "amqp:transaction:unknown-id",
    RolledBack: "amqp:transaction:rollback",
    MessageSizeExceeded: "amqp:link:message-size-exceeded",
}
_FAULT_OF_OURS = "amqp:internal-error"
_LONGEST = 384  # bytes of a description: with all else of an end or a detach in the smallest frame that a peer may want


def told(error: BrokerError) -> Error:
    """As the peer is told of it: a text that repeats what the peer has said may be as long as that."""
    text = error.text.encode()[:_LONGEST].decode(errors="ignore")
    return Error(Symbol(of_kind(_CONDITIONS, error, _FAULT_OF_OURS)), text)


def heard(error: object) -> BrokerError | None:
    """What a peer says in such a field, if it says anything: a condition, and mostly a description."""
    if not isinstance(error, Error):
        return None
    text = f"{error.condition}: {error.description}" if error.description else error.condition
    return SaidByPeer(text.encode()[:_LONGEST].decode(errors="ignore"))
