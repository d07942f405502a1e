"""The subject of a client's certificate, as a user name."""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import NameOID


def name_in(certificate: bytes, kind: str) -> str:
    """A certificate's (in DER) `common-name`, or its `distinguished-name` (RFC 4514).

    "" where it has no common name, or several: the authority may have verified another one of them than we would take.
    Raises ValueError where its subject cannot be read.
    """
    try:
        subject = x509.load_der_x509_certificate(certificate).subject
    except (KeyError, TypeError) as fault:  # the library raises these for string types that it does not know
        raise ValueError("the subject of its certificate cannot be read") from fault
    if kind == "distinguished-name":
        return subject.rfc4514_string()
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else ""
