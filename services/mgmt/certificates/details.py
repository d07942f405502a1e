"""What a certificate says, in Broker-J's words. Pure, but for the time of day."""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding

from services.common.clock import epoch_ms
from services.mgmt.certificates.kind import UNREADABLE, Named

_DAY: Final = 86_400_000  # milliseconds


def details(found: Named) -> dict[str, Any]:
    """Times are milliseconds since the Unix epoch. Raises one of UNREADABLE."""
    certificate = found.certificate
    return {
        "alias": found.alias,
        "serialNumber": str(certificate.serial_number),
        "version": certificate.version.value + 1,  # X.509 counts them from 0
        "signatureAlgorithm": _signed_by(certificate),
        "issuerName": certificate.issuer.rfc4514_string(),
        "subjectName": certificate.subject.rfc4514_string(),
        "subjectAltNames": _other_names(certificate),
        "validFrom": _ms(certificate.not_valid_before_utc),
        "validUntil": _ms(certificate.not_valid_after_utc),
    }


def days_until(time: int) -> int:
    """Whole days until a time in milliseconds since the Unix epoch; fewer than 0 where it is over."""
    return (time - epoch_ms()) // _DAY


def to_pem(found: Named) -> str:
    """As files have it."""
    return found.certificate.public_bytes(serialization.Encoding.PEM).decode()


def _signed_by(certificate: x509.Certificate) -> str:
    """SHA256withRSA, as Java calls it; of an algorithm that is made otherwise, or unknown, its number."""
    by, digest = None, None
    with contextlib.suppress(UnsupportedAlgorithm):
        by, digest = certificate.signature_algorithm_parameters, certificate.signature_hash_algorithm
    if digest is None or not isinstance(by, ec.ECDSA | padding.PKCS1v15):
        return certificate.signature_algorithm_oid.dotted_string
    return f"{digest.name.upper()}with{'ECDSA' if isinstance(by, ec.ECDSA) else 'RSA'}"


def _other_names(certificate: x509.Certificate) -> list[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, *UNREADABLE):  # of the latter no client makes anything either
        return []
    return [str(each.value) for each in found]


def _ms(time: datetime) -> int:
    return int(time.timestamp()) * 1000
