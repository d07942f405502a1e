"""Certificates and keys as PEM has them, or DER, of which there is one in a file."""

from __future__ import annotations

import re
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from services.mgmt.certificates.kind import Named
from services.mgmt.model.faults import IllegalConfiguration

_BEGIN: Final = b"-----BEGIN "
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


def certificates_in(data: bytes, attribute: str) -> list[Named]:
    """All of them. Raises IllegalConfiguration where there is none, or one that cannot be read."""
    try:
        if _BEGIN in data:
            return [Named(each) for each in x509.load_pem_x509_certificates(data)]
        return [Named(x509.load_der_x509_certificate(data))]
    except ValueError:
        raise IllegalConfiguration(f"attribute '{attribute}': there is no certificate in it, in PEM or DER") from None


def public_key_in(data: bytes, attribute: str) -> bytes:
    """What certificates of a private key say of it. Raises IllegalConfiguration where there is no such key."""
    try:
        return public_bytes(_load(data).public_key())
    except TypeError:
        raise IllegalConfiguration(f"attribute '{attribute}': the key has a password; take it away") from None
    except (ValueError, UnsupportedAlgorithm):
        raise IllegalConfiguration(f"attribute '{attribute}': there is no private key in it, in PEM or DER") from None


def _load(data: bytes) -> Any:  # noqa: ANN401 - of any algorithm
    if found := _KEY.search(data):  # there may be a certificate in front of it
        return serialization.load_pem_private_key(found[0], None)
    return serialization.load_der_private_key(data, None)


def public_bytes(key: Any) -> bytes:  # noqa: ANN401 - of any algorithm
    """To compare a key with."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_bytes(serialization.Encoding.DER, form)
    return found
