"""A self-signed certificate for trying TLS out: clients have to be told to trust it."""

from __future__ import annotations

import fcntl
import socket
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from services.common.clock import epoch_ns
from services.common.runtime import CannotStart

_DAYS = 365
_RENEWED = timedelta(days=30)  # before it expires


def self_signed(path: Path) -> Path:
    """`path`, with a certificate for this machine and its key; made when there is none, or it expires soon.

    Raises CannotStart when it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (path.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # gateways that start together show one
            if not path.exists() or _is_soon_over(path):
                _write(path, _make())
    except (OSError, ValueError) as failure:
        raise CannotStart(f"HOPLINE_TLS_SELF_SIGNED: {path}: {failure}") from failure
    return path


def _is_soon_over(path: Path) -> bool:
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc - _RENEWED < _now()


def _make() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    host, now = socket.gethostname(), _now()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in dict.fromkeys((host, "localhost"))]
    names += [x509.IPAddress(ip_address(each)) for each in ("127.0.0.1", "::1")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + private


def _write(path: Path, pem: bytes) -> None:
    """Writes the file whole or not at all: several gateways may share the folder."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:  # of mode 0600
        file.write(pem)
    Path(file.name).replace(path)


def _now() -> datetime:
    return datetime.fromtimestamp(epoch_ns() // 10**9, UTC)
