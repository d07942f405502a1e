"""FileTrustStore: certificates in a store of PKCS #12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.mgmt.certificates.kind import Named
from services.mgmt.certificates.pkcs12 import named, open_store
from services.mgmt.certificates.urls import fetch
from services.mgmt.model.faults import IllegalConfiguration

_URL = "storeUrl"


class FileTrustStore:
    """See Kind."""

    attributes = (_URL, "password", "trustStoreType")
    url = _URL
    secret = frozenset({_URL, "password"})

    def read(self, said: Mapping[str, str]) -> Sequence[Named]:
        """All of them but that of a private key, which is not there to be trusted."""
        found = open_store(fetch(said[_URL], _URL), said["password"], _URL).additional_certs
        if not found:
            raise IllegalConfiguration(f"attribute '{_URL}': there is no certificate in it that would be trusted")
        return [named(each) for each in found]
