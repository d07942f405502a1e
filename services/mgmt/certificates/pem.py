"""Certificates and keys as PEM has them, or DER, of which there is one in a file."""

from __future__ import annotations

import re
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from services.mgmt.certificates.kind import UNREADABLE, Named
from services.mgmt.model.faults import IllegalConfiguration

_BEGIN: Final = b"-----BEGIN "
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----")


def certificates_in(data: bytes, attribute: str) -> list[Named]:
    """All of them. Raises IllegalConfiguration where there is none, or one that cannot be read."""
    try:
        if _BEGIN in data:
            return [Named(each) for each in x509.load_pem_x509_certificates(data)]
        return [Named(x509.load_der_x509_certificate(data))]
    except UNREADABLE:
        raise IllegalConfiguration(f"attribute '{attribute}': there is no certificate in it, in PEM or DER") from None


def public_key_of(holder: Any, attribute: str) -> bytes:  # noqa: ANN401 - a certificate, or a private key
    """To compare with another's. Raises IllegalConfiguration for one of an unknown kind."""
    try:
        return _public_bytes(holder.public_key())
    except UNREADABLE as error:
        raise IllegalConfiguration(f"attribute '{attribute}': the key in it cannot be read: {error}") from None


def public_key_in(data: bytes, attribute: str) -> bytes:
    """What certificates of a private key say of it. Raises IllegalConfiguration where there is no such key."""
    try:
        return _public_bytes(_load(data).public_key())
    except TypeError:
        raise IllegalConfiguration(f"attribute '{attribute}': the key has a password; take it away") from None
    except UNREADABLE:
        raise IllegalConfiguration(f"attribute '{attribute}': there is no private key in it, in PEM or DER") from None


def _load(data: bytes) -> Any:  # noqa: ANN401 - of any algorithm
    if found := _KEY.search(data):  # there may be a certificate in front of it, and behind
        end = b"-----END %b-----" % found[1]
        return serialization.load_pem_private_key(data[found.start() :].partition(end)[0] + end, None)
    return serialization.load_der_private_key(data, None)


def _public_bytes(key: Any) -> bytes:  # noqa: ANN401 - of any algorithm
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_bytes(serialization.Encoding.DER, form)
    return found
