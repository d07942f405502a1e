"""An authority for tests, and what it signs."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

_NOW = datetime.now(UTC)


class Authority:
    """Signs certificates; `path` is its own, in PEM."""

    def __init__(self, folder: Path, name: str = "Test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.path = folder / f"{name.replace(' ', '-').lower()}.pem"
        built = _build(self._name, self._name, self._key.public_key())
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.path.write_bytes(built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, hosts: Sequence[str] = (), file: str = "", organization: str = "", days: int = 2) -> Path:
        """A certificate with its key, in one file."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = _build(_name(name, organization), self._name, key.public_key(), days)
        if hosts:
            names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
            built = built.add_extension(names, critical=False)
        path = self._folder / (file or f"{name}.pem")
        pem = built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        path.write_bytes(pem + private(key))
        return path

    def client(self, certificate: Path | None = None) -> ssl.SSLContext:
        """Of a client that trusts this authority alone, and has a certificate or none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.path)
        if certificate:
            context.load_cert_chain(certificate)
        return context


def key_store(pem: Path, password: str, alias: str = "1", above: Sequence[Path] = ()) -> bytes:
    """PKCS #12 of a certificate with its key."""
    certificate, its = x509.load_pem_x509_certificate(pem.read_bytes()), private_key(pem)
    others = [x509.load_pem_x509_certificate(each.read_bytes()) for each in above]
    how = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(alias.encode(), its, certificate, others, how)


def trust_store(trusted: Path, password: str) -> bytes:
    """PKCS #12 of one certificate, as Java writes it."""
    certificate = pkcs12.PKCS12Certificate(x509.load_pem_x509_certificate(trusted.read_bytes()), b"ca")
    return pkcs12.serialize_java_truststore([certificate], serialization.BestAvailableEncryption(password.encode()))


def odd(pem: Path, what: str, instead: str) -> str:
    """A data: URL of a certificate in which some bytes, in hexadecimal, are others."""
    der = x509.load_pem_x509_certificate(pem.read_bytes()).public_bytes(serialization.Encoding.DER)
    assert bytes.fromhex(what) in der
    return data_url(der.replace(bytes.fromhex(what), bytes.fromhex(instead)))


ODD_SIGNATURE: Final = ("06082a8648ce3d040302", "06082a8648ce3d04037f")
ODD_KEY: Final = ("06072a8648ce3d0201", "06072a8648ce3d027f")
ODD_VERSION: Final = ("a003020102", "a003020109")


def private_key(pem: Path) -> ec.EllipticCurvePrivateKey:
    """The key behind a certificate."""
    text = pem.read_bytes()
    key = serialization.load_pem_private_key(text[text.index(b"-----BEGIN PRIVATE KEY") :], None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def data_url(data: bytes) -> str:
    """With it in itself."""
    return f"data:;base64,{base64.b64encode(data).decode()}"


def private(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A key in PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _name(common: str, organization: str = "") -> x509.Name:
    found = {NameOID.ORGANIZATION_NAME: organization, NameOID.COMMON_NAME: common}
    return x509.Name([x509.NameAttribute(kind, name) for kind, name in found.items() if name])


def _build(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 2
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - timedelta(hours=1))
        .not_valid_after(_NOW + timedelta(days=days))
    )
