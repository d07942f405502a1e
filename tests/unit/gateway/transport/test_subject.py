"""The user that a certificate names, with any subject."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from services.gateway.transport.subject import name_in
from tests.support.certificates import _build

KINDS = ("common-name", "distinguished-name")


def certificate(*parts: Sequence[x509.NameAttribute]) -> bytes:
    """In DER, of a subject of so many relative names."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.RelativeDistinguishedName(part) for part in parts])
    return _build(subject, x509.Name([]), key.public_key()).sign(key, hashes.SHA256()).public_bytes(
        serialization.Encoding.DER
    )  # fmt: skip


def common(name: str, kind: _ASN1Type = _ASN1Type.UTF8String) -> x509.NameAttribute:
    return x509.NameAttribute(NameOID.COMMON_NAME, name, _type=kind)


def test_one_name() -> None:
    """Is the user's name, as it is written there: nothing of it is cut off or changed."""
    for name in ("guest", "guest\0evil", " guest ", "a,O=Example", "#6775"):
        assert name_in(certificate([common(name)]), "common-name") == name
    assert name_in(certificate([common("a,O=Example")]), "distinguished-name") == "CN=a\\,O=Example"
    assert name_in(certificate([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example")]), "common-name") == ""


@pytest.mark.parametrize(
    "parts", [([common("guest")], [common("mallory")]), ([common("guest"), common("mallory")],)], ids=["two", "in one"]
)
def test_several_names(parts: tuple[Sequence[x509.NameAttribute], ...]) -> None:
    """Name no user: an authority may have verified mallory, and we would let in guest."""
    assert name_in(certificate(*parts), "common-name") == ""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tag", [2, 3, 6, 9, 28])
def test_a_name_that_is_no_text(kind: str, tag: int) -> None:
    """Cannot be read, which is said as of any such certificate."""
    odd = certificate([common("guest", _ASN1Type.PrintableString)])
    with pytest.raises(ValueError, match=r"."):
        name_in(odd.replace(b"\x13\x05guest", bytes([tag]) + b"\x05guest"), kind)
