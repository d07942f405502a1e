"""Types of key stores and trust stores: what is in them, and what is wrong with those that nothing can be done with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from services.mgmt.certificates import file_key_store
from services.mgmt.certificates.details import details, to_pem
from services.mgmt.certificates.file_key_store import FileKeyStore
from services.mgmt.certificates.file_trust_store import FileTrustStore
from services.mgmt.certificates.kind import Kind
from services.mgmt.certificates.non_java_key_store import NonJavaKeyStore
from services.mgmt.certificates.non_java_trust_store import NonJavaTrustStore
from services.mgmt.model.faults import IllegalConfiguration
from tests.support.certificates import (
    ODD_KEY,
    ODD_SIGNATURE,
    ODD_VERSION,
    Authority,
    data_url,
    key_store,
    odd,
    private_key,
    trust_store,
)


def test_a_file_key_store(authority: Authority, tmp_path: Path) -> None:
    """Has its key's certificate first, then what is above it; a path and a data: URL are the same."""
    store = key_store(authority.sign("broker", ["a.test", "b.test"]), "s", "web", [authority.path])
    (tmp_path / "web.p12").write_bytes(store)
    for url in (str(tmp_path / "web.p12"), f"file://{tmp_path}/web.p12", data_url(store)):
        first, second = FileKeyStore().read({"storeUrl": url, "password": "s", "certificateAlias": "web"})
        told = details(first)
        assert (told["alias"], told["subjectName"], told["issuerName"]) == ("web", "CN=broker", "CN=Test authority")
        assert (told["subjectAltNames"], told["signatureAlgorithm"]) == (["a.test", "b.test"], "SHA256withECDSA")
        assert (told["version"], int(told["serialNumber"])) == (3, first.certificate.serial_number)
        assert to_pem(second) == authority.path.read_text()


def test_a_non_java_key_store(authority: Authority) -> None:
    """Is read of one file that has both, of files of their own, and of DER."""
    pem = authority.sign("broker")
    der = private_key(pem).private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for key in (str(pem), data_url(der)):
        said = {"privateKeyUrl": key, "certificateUrl": str(pem), "intermediateCertificateUrl": str(authority.path)}
        names = [details(each)["subjectName"] for each in NonJavaKeyStore().read(said)]
        assert names == ["CN=broker", "CN=Test authority"]


def test_trust_stores(authority: Authority, tmp_path: Path) -> None:
    """Have certificates, of which those of PKCS #12 have a name."""
    store = trust_store(authority.path, "s")
    [found] = FileTrustStore().read({"storeUrl": data_url(store), "password": "s"})
    assert (details(found)["alias"], details(found)["subjectName"]) == ("ca", "CN=Test authority")
    (tmp_path / "both.pem").write_bytes(authority.path.read_bytes() * 2)
    assert len(NonJavaTrustStore().read({"certificatesUrl": str(tmp_path / "both.pem")})) == 2


def test_an_odd_signature(authority: Authority) -> None:
    """For an unknown algorithm its number is shown."""
    [found] = NonJavaTrustStore().read({"certificatesUrl": odd(authority.path, *ODD_SIGNATURE)})
    assert details(found)["signatureAlgorithm"] == "1.2.840.10045.4.3.127"


def _encrypted(authority: Authority) -> str:
    key = private_key(authority.sign("broker"))
    how = serialization.BestAvailableEncryption(b"s")
    return data_url(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how))


Said = Callable[[Authority], dict[str, str]]
WRONG: list[tuple[type[Kind], Said, str]] = [
    (FileKeyStore, lambda a: {"storeUrl": data_url(key_store(a.sign("x"), "s")), "password": "t"}, "another password"),
    (FileKeyStore, lambda _: {"storeUrl": data_url(b"nothing"), "password": "t"}, "no store of PKCS12"),
    (
        FileKeyStore,
        lambda _: {"storeUrl": data_url(b"\xfe\xed\xfe\xed" + b"\0" * 9), "password": "s"},
        "a store of JKS",
    ),
    (FileKeyStore, lambda a: {"storeUrl": data_url(trust_store(a.path, "s")), "password": "s"}, "no private key"),
    (
        FileKeyStore,
        lambda a: {"storeUrl": data_url(key_store(a.sign("x"), "s", "web")), "password": "s", "certificateAlias": "y"},
        "one is 'web'",
    ),
    (FileKeyStore, lambda _: {"storeUrl": "web.p12", "password": "s"}, "an absolute path is wanted"),
    (FileKeyStore, lambda _: {"storeUrl": "/nowhere/web.p12", "password": "s"}, "No such file"),
    (NonJavaTrustStore, lambda _: {"certificatesUrl": "/proc/self/environ"}, "there is nothing in it"),
    (FileKeyStore, lambda _: {"storeUrl": "/dev/zero", "password": "s"}, "it is no file"),
    (FileKeyStore, lambda _: {"storeUrl": "data:;base64", "password": "s"}, "has a comma"),
    (FileKeyStore, lambda _: {"storeUrl": "data:;base64,%", "password": "s"}, "no base64"),
    (
        NonJavaKeyStore,
        lambda a: {"privateKeyUrl": str(a.sign("x")), "certificateUrl": str(a.sign("y"))},
        "the certificate is another key's",
    ),
    (
        NonJavaKeyStore,
        lambda a: {"privateKeyUrl": str(a.path), "certificateUrl": str(a.path)},
        "there is no private key",
    ),
    (NonJavaKeyStore, lambda a: {"privateKeyUrl": _encrypted(a), "certificateUrl": str(a.path)}, "key has a password"),
    (
        NonJavaKeyStore,
        lambda a: {"privateKeyUrl": str(a.sign("x")), "certificateUrl": odd(a.sign("x"), *ODD_KEY)},
        "the key in it cannot be read",
    ),
    (NonJavaKeyStore, lambda _: {"privateKeyUrl": data_url(b"-----BEGIN PRIVATE KEY-----" * 40_000)}, "no private key"),
    (NonJavaTrustStore, lambda a: {"certificatesUrl": odd(a.path, *ODD_VERSION)}, "there is no certificate in it"),
    (NonJavaTrustStore, lambda _: {"certificatesUrl": "data:,nothing"}, "there is no certificate in it"),
    (
        FileTrustStore,
        lambda a: {"storeUrl": data_url(key_store(a.sign("x"), "s")), "password": "s"},
        "would be trusted",
    ),
]


@pytest.mark.parametrize(("kind", "said", "why"), WRONG, ids=[f"{kind.__name__}: {why}" for kind, _, why in WRONG])
def test_what_is_wrong(authority: Authority, kind: type[Kind], said: Said, why: str) -> None:
    """Is told with the attribute that it is wrong with; nothing secret is in it."""
    with pytest.raises(IllegalConfiguration) as told:
        kind().read(said(authority))
    assert why in told.value.text
    assert told.value.text.startswith("attribute '")


def test_a_certificate_of_another_key(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes no key store of PKCS #12 either; no library writes such a store, but one can be put together."""
    certificate = x509.load_pem_x509_certificate(authority.sign("y").read_bytes())
    named, key = pkcs12.PKCS12Certificate(certificate, b"1"), private_key(authority.sign("x"))
    store = pkcs12.PKCS12KeyAndCertificates(key, named, [])
    monkeypatch.setattr(file_key_store, "open_store", lambda *_: store)
    with pytest.raises(IllegalConfiguration, match="the certificate in it is another key's"):
        FileKeyStore().read({"storeUrl": "data:,", "password": "s"})
