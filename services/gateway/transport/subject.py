"""Whose a certificate is."""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import NameOID


def name_in(certificate: bytes, kind: str) -> str:
    """Of a certificate in DER: its `common-name` ("" when it has none), or its `distinguished-name` (RFC 4514)."""
    subject = x509.load_der_x509_certificate(certificate).subject
    if kind == "distinguished-name":
        return subject.rfc4514_string()
    found = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""
