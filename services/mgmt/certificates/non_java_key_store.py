"""NonJavaKeyStore: a private key and its certificate, in PEM or DER."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.mgmt.certificates.kind import Named
from services.mgmt.certificates.pem import certificates_in, public_key_in, public_key_of
from services.mgmt.certificates.urls import fetch
from services.mgmt.model.faults import IllegalConfiguration

_KEY, _CERTIFICATE, _ABOVE = "privateKeyUrl", "certificateUrl", "intermediateCertificateUrl"


class NonJavaKeyStore:
    """See Kind."""

    attributes = (_KEY, _CERTIFICATE, _ABOVE)
    url = _CERTIFICATE
    secret = frozenset({_KEY})

    def read(self, said: Mapping[str, str]) -> Sequence[Named]:
        """The certificate, and what is above it."""
        key = public_key_in(fetch(said[_KEY], _KEY), _KEY)
        found = certificates_in(fetch(said[_CERTIFICATE], _CERTIFICATE), _CERTIFICATE)
        if public_key_of(found[0].certificate, _CERTIFICATE) != key:
            raise IllegalConfiguration(f"attribute '{_CERTIFICATE}': the certificate is another key's")
        return [*found, *(certificates_in(fetch(said[_ABOVE], _ABOVE), _ABOVE) if said.get(_ABOVE) else ())]
