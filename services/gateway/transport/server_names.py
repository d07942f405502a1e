"""The names that a certificate is for (RFC 6125, section 6.4)."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtensionOID, NameOID


def names_in(path: Path) -> list[str]:
    """The names of the first certificate in a file; raises OSError, and ValueError when there is none."""
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    try:
        found = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except x509.ExtensionNotFound:
        return [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    assert isinstance(found, x509.SubjectAlternativeName)
    return found.get_values_for_type(x509.DNSName)


def fits(name: str, asked: str) -> bool:
    """Whether a certificate for `name`, which may begin with `*.`, is valid for the host that is asked for."""
    name, asked = name.lower(), asked.lower().rstrip(".")
    if name.startswith("*."):
        return asked.partition(".")[2] == name[2:] != ""
    return name == asked
