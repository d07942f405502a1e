"""Stores as Java and OpenSSL write them since Java 9: PKCS #12 (RFC 7292)."""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import pkcs12

from services.mgmt.certificates.kind import Named
from services.mgmt.model.faults import IllegalConfiguration

TYPE: Final = "PKCS12"
_OLDER: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How JKS and JCEKS begin."""


def open_store(data: bytes, password: str, attribute: str) -> pkcs12.PKCS12KeyAndCertificates:
    """Raises IllegalConfiguration for what is none, or has another password."""
    if data.startswith(_OLDER):
        convert = "keytool -importkeystore -deststoretype pkcs12 makes one of it"
        raise IllegalConfiguration(f"attribute '{attribute}': it is a store of JKS, {TYPE} is wanted: {convert}")
    try:
        return pkcs12.load_pkcs12(data, password.encode())
    except (ValueError, UnsupportedAlgorithm):
        wrong = f"attribute '{attribute}': it is no store of {TYPE}, or has another password than 'password' says"
        raise IllegalConfiguration(wrong) from None


def named(found: pkcs12.PKCS12Certificate) -> Named:
    """With its alias."""
    return Named(found.certificate, (found.friendly_name or b"").decode(errors="replace"))
