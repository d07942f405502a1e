"""ManagedCertificateStore: certificates that are in the store itself, added and removed one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from services.mgmt.certificates.details import details, to_pem
from services.mgmt.certificates.kind import Named
from services.mgmt.certificates.pem import certificates_in
from services.mgmt.model.faults import IllegalConfiguration

TYPE: Final = "ManagedCertificateStore"
STORED: Final = "storedCertificates"
_BEGIN: Final = "-----BEGIN "
_KEY: Final = "PRIVATE KEY"
_WHICH: Final = ("issuerName", "serialNumber")
Change = Callable[[Mapping[str, str]], Mapping[str, str]]


class ManagedCertificateStore:
    """See Kind."""

    attributes = (STORED,)
    url = ""
    secret = frozenset[str]()

    def read(self, said: Mapping[str, str]) -> Sequence[Named]:
        """All of them: there may be none."""
        if _KEY in (text := said.get(STORED, "")):
            raise IllegalConfiguration(
                f"attribute '{STORED}': there is a private key in it, which others would be told"
            )
        return certificates_in(text.encode(), STORED) if text else ()


def together(certificates: Iterable[object]) -> str:
    """Each PEM, or DER in base64. Raises IllegalConfiguration for what is no text."""
    return "\n".join(dict.fromkeys(map(_pem, certificates)))


def adding(certificate: object) -> Change:
    """What is stored with one more; one that is there already is there once."""
    more = certificates_in(_pem(certificate).encode(), STORED)

    def change(former: Mapping[str, str]) -> Mapping[str, str]:
        return _stored([*ManagedCertificateStore().read(former), *more])

    return change


def removing(certificates: Iterable[Any]) -> Change:
    """Without those that are named: by maps of issuerName and serialNumber. Raises IllegalConfiguration for another."""
    gone = [_named(each) for each in certificates]

    def change(former: Mapping[str, str]) -> Mapping[str, str]:
        return _stored(each for each in ManagedCertificateStore().read(former) if _named(details(each)) not in gone)

    return change


def _stored(found: Iterable[Named]) -> Mapping[str, str]:
    return {STORED: together(to_pem(each) for each in found)}


def _named(said: Any) -> tuple[str, ...]:  # noqa: ANN401 - whatever JSON has
    if not isinstance(said, Mapping) or any(name not in said for name in _WHICH):
        raise IllegalConfiguration(f"parameter 'certificates': maps of {' and '.join(_WHICH)} are wanted")
    return tuple(str(said[name]) for name in _WHICH)


def _pem(certificate: object) -> str:
    if not isinstance(certificate, str):
        raise IllegalConfiguration(f"attribute '{STORED}': certificates are texts: PEM, or DER in base64")
    if _BEGIN in certificate:
        return certificate.strip()
    return f"{_BEGIN}CERTIFICATE-----\n{''.join(certificate.split())}\n-----END CERTIFICATE-----"
