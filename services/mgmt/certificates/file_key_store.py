"""FileKeyStore: a store of PKCS #12, with one private key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives.serialization import pkcs12

from services.mgmt.certificates.kind import Named
from services.mgmt.certificates.pem import public_key_of
from services.mgmt.certificates.pkcs12 import named, open_store
from services.mgmt.certificates.urls import fetch
from services.mgmt.model.faults import IllegalConfiguration

_URL = "storeUrl"


class FileKeyStore:
    """See Kind."""

    attributes = (_URL, "password", "certificateAlias", "keyStoreType")
    url = _URL
    secret = frozenset({_URL, "password"})

    def read(self, said: Mapping[str, str]) -> Sequence[Named]:
        """Its key's certificate, and what is above that."""
        store = open_store(fetch(said[_URL], _URL), said["password"], _URL)
        if not store.key or not store.cert:
            raise IllegalConfiguration(f"attribute '{_URL}': there is no private key in it, with its certificate")
        _check(store, said.get("certificateAlias", ""))
        return [named(store.cert), *map(named, store.additional_certs)]


def _check(store: pkcs12.PKCS12KeyAndCertificates, alias: str) -> None:
    assert store.key
    assert store.cert
    if alias and named(store.cert).alias.lower() != alias.lower():  # Java writes them in lower case
        there = named(store.cert).alias
        raise IllegalConfiguration(f"attribute 'certificateAlias': no private key is called so, but one is '{there}'")
    if public_key_of(store.key, _URL) != public_key_of(store.cert.certificate, _URL):
        raise IllegalConfiguration(f"attribute '{_URL}': the certificate in it is another key's")
