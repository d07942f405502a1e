"""A gateway's certificates, and the authorities of client certificates that it accepts: files, which may change.

They are looked at once a second. If they cannot be read that is logged, and the former stay; without any there is no
TLS until they can: what needs none is served.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog
from cryptography import x509

from services.common.clock import Clock, monotonic
from services.common.runtime import CannotStart
from services.gateway.transport.odd_names import be_quiet
from services.gateway.transport.self_signed import self_signed
from services.gateway.transport.server_names import fits, names_in

if TYPE_CHECKING:
    from services.common.config import Settings

log = structlog.get_logger()

_EVERY = 1.0  # seconds
_DO = "put a certificate with its key there (HOPLINE_TLS_CERTIFICATE, HOPLINE_TLS_KEY); it is read within a second"
_FORMER = "the former certificate is shown"
_NONE = "there is no TLS until it can be read"
_REASONS = {  # of OpenSSL, in words; where it has none it found nothing to read
    "KEY_VALUES_MISMATCH": "the key is another certificate's",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate in it, in PEM",
    None: "there is no certificate, or no key, in it, in PEM",
}
_UNREADABLE = (
    OSError,
    ValueError,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
_ASKED = {"none": ssl.CERT_NONE, "wanted": ssl.CERT_OPTIONAL, "needed": ssl.CERT_REQUIRED}


State = list[tuple[int, int, int]]


class Files(NamedTuple):
    """`certificates` with their chains; `keys` of each, or none where a certificate's file has its key too.

    `clients`: whether clients show a certificate signed by `authorities`: none, wanted, needed.
    """

    certificates: tuple[Path, ...]
    keys: tuple[Path, ...] = ()
    authorities: Path | None = None
    clients: str = "none"

    def state(self) -> State:
        """A value that changes whenever a file does; raises OSError."""
        found = [path.stat() for path in (*self.certificates, *self.keys, *filter(None, [self.authorities]))]
        return [(each.st_mtime_ns, each.st_size, each.st_ino) for each in found]


class Certificates:
    """The certificates of one gateway. A client that asks for no name, or for an unknown one, is shown the first."""

    def __init__(self, files: Files, clock: Clock = monotonic) -> None:
        self._files = files
        self._clock = clock
        self._state: State | None = None  # of the files when they were read
        self._context: ssl.SSLContext | None = None
        self._said = ""  # why they cannot be read: logged once, not at each attempt
        self._looked = clock()
        self._look()

    def context(self) -> ssl.SSLContext:
        """The TLS context for the next client. Raises ValueError where none could be read yet."""
        self._look_again()
        if self._context is None:
            raise ValueError(self._said)
        return self._context

    @property
    def there(self) -> bool:
        """Whether there is one to show: those in the files, or the former."""
        self._look_again()
        return self._context is not None

    @property
    def amiss(self) -> str:
        """Why the files cannot be used, and what clients get meanwhile; "" where they can."""
        self._look_again()
        return f"{self._said}; {self._meanwhile}" if self._said else ""

    @property
    def _meanwhile(self) -> str:
        return _FORMER if self._context else _NONE

    def _look_again(self) -> None:
        if self._clock() - self._looked >= _EVERY:
            self._looked = self._clock()
            self._look()

    def _look(self) -> None:
        """Reads changed files. After a failure it tries again even if they stay: too many may have been open."""
        reason = ""
        try:
            self._read()
        except _UNREADABLE as failure:
            reason = _told(failure)
        if reason and reason != self._said:
            log.error("a certificate cannot be read", reason=reason, meanwhile=self._meanwhile, do=_DO)
        self._said = reason

    def _read(self) -> None:
        state = self._files.state()
        if state == self._state:
            return
        self._context = _context_of(self._files)
        if self._state or self._said:
            log.info("certificates were read again", files=[str(path) for path in self._files.certificates])
        self._state = state


def certificates_of(settings: Settings) -> Certificates:
    """The certificates that the settings name, or a self-signed one. Raises CannotStart."""
    if settings.tls_clients != "none" and settings.tls_client_authorities is None:
        raise CannotStart("HOPLINE_TLS_CLIENTS wants certificates: set HOPLINE_TLS_CLIENT_AUTHORITIES, who signs them")
    if settings.tls_key and len(settings.tls_key) != len(settings.tls_certificate):
        raise CannotStart("HOPLINE_TLS_KEY names a key for each certificate of HOPLINE_TLS_CERTIFICATE, or none")
    shown = settings.tls_certificate or (self_signed(settings.data / "tls" / "self-signed.pem"),)
    return Certificates(Files(shown, settings.tls_key, settings.tls_client_authorities, settings.tls_clients))


def _context_of(files: Files) -> ssl.SSLContext:
    keys = files.keys or (None,) * len(files.certificates)
    contexts = [_context(path, key, files) for path, key in zip(files.certificates, keys, strict=True)]
    names = [names_in(path) for path in files.certificates]
    if len(contexts) > 1:
        be_quiet()
        contexts[0].sni_callback = _chooser(list(zip(names, contexts, strict=True)))
    return contexts[0]


def _context(certificate: Path, key: Path | None, files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could renegotiate without end
    context.verify_mode = _ASKED[files.clients]
    if files.authorities:
        with _naming(str(files.authorities)):
            context.load_verify_locations(files.authorities)
    with _naming(f"{certificate} with {key}" if key else str(certificate)):
        context.load_cert_chain(certificate, key, password=_no_password)
    return context


@contextmanager
def _naming(files: str) -> Iterator[None]:
    """Says which files it is that cannot be read: OpenSSL does not."""
    try:
        yield
    except (OSError, ValueError) as failure:  # ssl.SSLError is an OSError
        raise ValueError(f"{files}: {_told(failure)}") from failure


def _no_password() -> str:
    raise ValueError("its key has a password, which the gateway could not ask for when it starts")


def _chooser(named: list[tuple[list[str], ssl.SSLContext]]) -> Callable[[ssl.SSLObject, str | None, object], None]:
    """Chooses the certificate for the name that a client asks for: SNI (RFC 6066, section 3)."""

    def choose(connection: ssl.SSLObject, asked: str | None, _context: object) -> None:
        if asked:
            found = (context for names, context in named if any(fits(name, asked) for name in names))
            connection.context = next(found, named[0][1])

    return choose


def _told(failure: Exception) -> str:
    if isinstance(failure, ssl.SSLError):
        return _REASONS.get(failure.reason, f"it is not as it should be ({failure.reason})")
    if isinstance(failure, OSError) and failure.strerror:
        return f"{failure.filename}: {failure.strerror}" if failure.filename else failure.strerror
    return str(failure)
