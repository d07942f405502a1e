"""NonJavaTrustStore: certificates in PEM, or one in DER."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.mgmt.certificates.kind import Named
from services.mgmt.certificates.pem import certificates_in
from services.mgmt.certificates.urls import fetch

_URL = "certificatesUrl"


class NonJavaTrustStore:
    """See Kind."""

    attributes = (_URL,)
    url = _URL
    secret = frozenset[str]()

    def read(self, said: Mapping[str, str]) -> Sequence[Named]:
        """All of them."""
        return certificates_in(fetch(said[_URL], _URL), _URL)
