"""TLS as a kind of transport (RFC 8446; 5.1 for its first bytes): what comes over it may begin with another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from services.common.containment import contained
from services.gateway.transport.secured import name_of_client, shake_hands

if TYPE_CHECKING:
    from services.common.config import Settings
    from services.gateway.transport.arrival import Arrival
    from services.gateway.transport.certificates import Certificates

log = structlog.get_logger()

_HANDSHAKE = 0x16  # content type of a record; its version begins with 3 in every version of TLS
_MAJOR = 3
_CLIENT_HELLO = 1  # type of a handshake message (RFC 8446, section 4)
_RECORD, _MESSAGE = 5, 4  # bytes of the header of a record, and of a message in it
_LONGEST_HELLO = 16 << 10  # bytes; those of clients have hundreds, with keys against quantum computers 2000


class Tls:
    """TLS with the certificates of a gateway; off where there are none."""

    secure = True
    needs = "HOPLINE_TLS_CERTIFICATE"

    def __init__(self, settings: Settings) -> None:
        """Raises CannotStart as `certificates_of`."""
        self.certificates = _certificates(settings)

    @property
    def on(self) -> bool:
        """As Transport says."""
        return self.certificates is not None

    @property
    def usable(self) -> bool:
        """As Transport says."""
        return self.certificates is None or self.certificates.there

    @property
    def amiss(self) -> str:
        """As Transport says."""
        return self.certificates.amiss if self.certificates else ""

    def begins(self, data: bytes) -> bool | None:
        """As Transport says."""
        if data[0] != _HANDSHAKE:
            return False
        if len(data) > 1 and data[1] != _MAJOR:
            return False
        return None if is_too_long(data) is None else True

    def take(self, arrival: Arrival) -> None:
        """As Transport says."""
        if is_too_long(arrival.data):
            arrival.refuse(log.info, "TLS handshake failed", reason="the client's hello is too long")
        else:
            arrival.connection.listener.tasks.start(self._secure(arrival), "TLS handshake")

    async def _secure(self, arrival: Arrival) -> None:
        assert self.certificates
        connection, settings = arrival.connection, arrival.connection.listener.settings
        try:
            transport, early = await shake_hands(
                arrival.transport, self.certificates.context(), lambda: arrival.data, settings.handshake_timeout
            )
            connection.certified = name_of_client(transport, settings.tls_user)
        except Exception as failure:  # noqa: BLE001 - else the connection would never end
            _not_secured(arrival, failure)
            return
        arrival.look_again(transport)
        early.give_way(arrival)


def _not_secured(arrival: Arrival, failure: Exception) -> None:
    if not isinstance(failure, OSError | ValueError):  # ValueError: the certificate cannot be read
        contained("shaking hands with a client", failure, peer=arrival.connection.peer)
    arrival.refuse(log.info, "TLS handshake failed", reason=str(failure) or type(failure).__name__)
    arrival.connection.connection_lost(failure)
    # Where it came from has the connection, and what keeps the failure; a cycle stays until the collector comes by.
    failure.__traceback__ = None


def is_too_long(hello: bytes) -> bool | None:
    """Whether TLS begins with a longer ClientHello than any client needs; None while there is too little to tell.

    OpenSSL accepts one of 128 KiB, and keeps three times as much for each peer that sends all but its end.
    """
    if len(hello) < _RECORD:
        return None
    record = int.from_bytes(hello[3:_RECORD], "big")
    if record < _MESSAGE:
        return True  # its size would come only in the next records
    if record > _LONGEST_HELLO:
        return False  # no valid record: OpenSSL refuses it without the rest
    if len(hello) < _RECORD + _MESSAGE:
        return None
    kind, *size = hello[_RECORD : _RECORD + _MESSAGE]
    return kind == _CLIENT_HELLO and int.from_bytes(bytes(size), "big") > _LONGEST_HELLO


def _certificates(settings: Settings) -> Certificates | None:
    if not settings.tls_certificate and not settings.tls_self_signed:
        return None
    # Imported late: the library takes memory, which a gateway without certificates saves.
    from services.gateway.transport.certificates import certificates_of  # noqa: PLC0415

    return certificates_of(settings)
