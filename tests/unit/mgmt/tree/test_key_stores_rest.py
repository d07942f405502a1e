"""Key stores and trust stores over Broker-J's REST: made, changed and deleted as records, and those of the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from services.common.config import Settings
from services.mgmt.certificates.stores import Kept
from services.mgmt.service import Service
from services.rpc.store_pb2 import Record
from tests.support.certificates import ODD_SIGNATURE, Authority, data_url, key_store, odd, trust_store
from tests.support.fake_store import FakeStore
from tests.support.rest import Get, asking


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def _at(get: Get, method: str, path: str, body: object = None) -> tuple[int, Any]:
    status, told, _ = await get(f"/api/latest/{path}", "guest:guest", method, body)
    return status, told


async def test_a_key_store(get: Get, store: FakeStore, authority: Authority) -> None:
    """Is made, told without its secrets, which are sealed on record, changed, found by when it is over, and deleted."""
    p12 = data_url(key_store(authority.sign("broker"), "hunter2", "web"))
    status, told = await _at(
        get, "PUT", "keystore/web", {"storeUrl": p12, "password": "hunter2", "description": "mine"}
    )
    assert (status, told["type"], told["storeUrl"], told["password"]) == (201, "FileKeyStore", "********", "********")
    assert (told["subjectName"], told["certificateDetails"][0]["alias"]) == ("CN=broker", "web")
    assert told["statistics"] == {"certificateCount": 1, "daysUntilExpiry": 1}
    record = store.records["key_store", "web"].value.decode()
    assert not any(secret in record + str(told) for secret in ("hunter2", p12, "PRIVATE KEY"))
    status, told = await _at(get, "POST", "keystore/web", {"certificateAlias": "web", "password": "********"})
    assert (status, told["certificateAlias"], told["lastUpdatedBy"]) == (200, "web", "guest")
    assert (await _at(get, "POST", "keystore/web", {"certificateAlias": "other"}))[0] == 422
    asked = {"select": "name, password, daysUntilExpiry", "where": "daysUntilExpiry < 30"}
    assert (await _at(get, "POST", "querybroker/keystore", asked))[1]["results"] == [["web", None, 1]]
    assert [each["name"] for each in (await _at(get, "GET", "broker?depth=1"))[1]["keystores"]] == ["web"]
    actual = (await _at(get, "GET", "keystore/web?actuals=true"))[1]
    assert (actual["certificateAlias"], actual["password"], "subjectName" in actual) == ("web", "********", False)
    assert [(await _at(get, "DELETE", "keystore/web"))[0] for _ in range(2)] == [200, 404]
    assert ("key_store", "web") not in store.records


async def test_a_key_store_of_files(get: Get, authority: Authority, tmp_path: Path) -> None:
    """Is read again on request; what is wrong then is refused, and the former stays shown."""
    one = authority.sign("one", file="tls.pem")
    said = {"type": "NonJavaKeyStore", "privateKeyUrl": str(one), "certificateUrl": str(one)}
    told = (await _at(get, "PUT", "keystore/files", said))[1]
    assert (told["subjectName"], told["file"], told["certificateUrl"]) == ("CN=one", str(one), str(one))
    assert (await _at(get, "GET", "keystore/files/getCertificate"))[1] in one.read_text()
    authority.sign("two", file="tls.pem")
    assert (await _at(get, "GET", "keystore/files"))[1]["subjectName"] == "CN=one"
    assert (await _at(get, "GET", "keystore/files/reload"))[0] == 405
    assert (await _at(get, "POST", "keystore/files/reload", {}))[0] == 200
    assert (await _at(get, "GET", "keystore/files"))[1]["subjectName"] == "CN=two"
    one.write_text("nothing")
    assert (await _at(get, "POST", "keystore/files/reload", {}))[0] == 422
    assert (await _at(get, "GET", "keystore?subjectName=CN%3Dtwo"))[1][0]["name"] == "files"


async def test_a_trust_store(get: Get, authority: Authority) -> None:
    """Is made of either type, and shows the certificates that it trusts."""
    said = {"storeUrl": data_url(trust_store(authority.path, "s")), "password": "s"}
    assert (await _at(get, "POST", "truststore", {"name": "java", **said}))[0] == 201
    pem = {"type": "NonJavaTrustStore", "certificatesUrl": data_url(authority.path.read_bytes())}
    told = (await _at(get, "PUT", "truststore/pem", pem))[1]
    assert (told["certificateDetails"][0]["subjectName"], len(told["certificatesUrl"])) == ("CN=Test authority", 119)
    assert told["statistics"]["certificateCount"] == 1
    assert [each["name"] for each in (await _at(get, "GET", "truststore?orderBy=name"))[1]] == ["java", "pem"]


WRONG = [
    ({"storeUrl": "data:,x"}, "attribute 'password' of KeyStore: it is mandatory"),
    (
        {"type": "NonJavaKeyStore", "certificateUrl": "data:,x"},
        "attribute 'privateKeyUrl' of KeyStore: it is mandatory",
    ),
    (
        {"type": "NonJavaKeyStore", "certificateUrl": "data:,x", "privateKeyUrl": "data:,x", "password": "s"},
        "none of that",
    ),
    ({"type": "AutoGeneratedSelfSigned"}, "of the settings alone"),
    ({"type": "JKS"}, "one of FileKeyStore, NonJavaKeyStore"),
    ({"storeUrl": "data:,x", "password": "hunter2", "durable": False}, "of all of them"),
    ({"storeUrl": "data:,x", "password": "hunter2"}, "has another password than"),
]


@pytest.mark.parametrize(("said", "why"), WRONG)
async def test_what_is_wrong(get: Get, store: FakeStore, said: dict[str, object], why: str) -> None:
    """Is no key store (422, with the reason), and nothing is put on record."""
    status, told = await _at(get, "PUT", "keystore/wrong", said)
    assert (status, why in told["errorMessage"], "hunter2" in str(told)) == (422, True, False), told
    assert ("key_store", "wrong") not in store.records


@pytest.fixture
async def with_files(tmp_path: Path, store: FakeStore, authority: Authority) -> AsyncIterator[Get]:
    certificates = tuple(authority.sign(name) for name in ("one", "two"))
    settings = Settings(
        data=tmp_path,
        http_host="127.0.0.1",
        http_port=0,
        mgmt_address=f"unix:{tmp_path}/with-files.sock",  # beside the other one
        partitions=4,
        tls_certificate=certificates,
        tls_clients="wanted",
        tls_client_authorities=authority.path,
    )
    service = Service(settings)
    await service.start()
    yield asking(service.http_port)
    await service.stop()


async def test_those_of_the_settings(with_files: Get, authority: Authority, tmp_path: Path) -> None:
    """Are told as their files are now, and change with the settings only."""
    one, two = (await _at(with_files, "GET", "keystore?ofSettings=true&orderBy=name"))[1]
    assert [(each["name"], each["subjectName"]) for each in (one, two)] == [("tls", "CN=one"), ("tls-2", "CN=two")]
    [trusted] = (await _at(with_files, "GET", "truststore"))[1]
    assert (trusted["name"], trusted["certificateDetails"][0]["subjectName"]) == ("tls", "CN=Test authority")
    authority.sign("three", file="one.pem")
    assert (await _at(with_files, "GET", "keystore/tls"))[1]["subjectName"] == "CN=three"
    (tmp_path / "two.pem").write_text("nothing")
    assert (await _at(with_files, "GET", "keystore/tls-2"))[1]["statistics"] == {"certificateCount": 0}
    assert (await _at(with_files, "PUT", "keystore/tls", {"certificateUrl": "data:,x"}))[0] == 403
    assert (await _at(with_files, "DELETE", "truststore/tls"))[0] == 403


async def test_ports_name_them(with_files: Get, get: Get) -> None:
    """Where TLS may be spoken. It changes with the settings only; where these name none there is none."""
    for transports in (["SSL"], ["TCP"]):
        port = f"port/{transports[0]}"
        assert (await _at(with_files, "PUT", port, {"port": 5699, "transports": transports}))[0] == 201
        told = (await _at(with_files, "GET", port))[1]
        named = (told.get("keyStore"), told.get("trustStores"))
        assert named == (("tls", ["tls"]) if transports == ["SSL"] else (None, None))
        assert "keyStore" not in (await _at(get, "GET", port))[1]
        assert (await _at(with_files, "PUT", port, {"keyStore": "web"}))[0] == 422
        assert (await _at(with_files, "DELETE", port))[0] == 200


async def test_odd_ones(get: Get, mgmt: Service, store: FakeStore, authority: Authority) -> None:
    """Are shown, changed and deleted as others are; an unreadable one on record can at least be deleted."""
    said = {"type": "NonJavaTrustStore", "certificatesUrl": odd(authority.path, *ODD_SIGNATURE)}
    assert (await _at(get, "PUT", "truststore/odd", said))[0] == 201
    broken = Kept(type="NonJavaTrustStore", certificates=(("", "no certificate"),)).to_json()
    await mgmt._store.put_records([Record(kind="trust_store", key="broken", value=broken)])
    await mgmt._house.seen("trust_store", "broken", there=True)
    told = (await _at(get, "GET", "truststore"))[1]
    assert {each["name"]: len(each["certificateDetails"]) for each in told} == {"broken": 0, "odd": 1}
    assert (await _at(get, "GET", "broker?depth=1"))[0] == 200
    assert [(await _at(get, "DELETE", f"truststore/{name}"))[0] for name in ("odd", "broken")] == [200, 200]


async def test_private_keys_where_they_would_be_told(get: Get, store: FakeStore, authority: Authority) -> None:
    """Are refused: only what is said of the key itself is sealed. A file that has both is read where it lies."""
    pem = authority.sign("broker")
    both, plain = data_url(pem.read_bytes()), data_url(pem.read_bytes().partition(b"-----BEGIN PRIVATE")[0])
    said = {"type": "NonJavaKeyStore", "privateKeyUrl": both}
    for wrong in ({"certificateUrl": both}, {"certificateUrl": plain, "intermediateCertificateUrl": both}):
        status, told = await _at(get, "PUT", "keystore/web", {**said, **wrong})
        assert (status, "there is a private key in it" in told["errorMessage"]) == (422, True), told
    status, told = await _at(get, "PUT", "truststore/web", {"type": "NonJavaTrustStore", "certificatesUrl": both})
    assert (status, "there is a private key in it" in told["errorMessage"]) == (422, True), told
    assert not {kind for kind, _ in store.records} & {"key_store", "trust_store"}
    for right in (plain, str(pem)):
        assert (await _at(get, "PUT", "keystore/web", {**said, "certificateUrl": right}))[0] in {200, 201}


async def test_certificates_on_record_are_read_once(
    get: Get, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each request: a trust store may have hundreds."""
    said = {"type": "NonJavaTrustStore", "certificatesUrl": data_url(authority.path.read_bytes())}
    assert (await _at(get, "PUT", "truststore/one", said))[0] == 201
    monkeypatch.setattr(Kept, "named", lambda _: pytest.fail("it is read again"))
    told = (await _at(get, "GET", "truststore/one"))[1]
    assert told["certificateDetails"][0]["subjectName"] == "CN=Test authority"


async def test_certificates_one_by_one(get: Get, store: FakeStore, authority: Authority) -> None:
    """Are added and removed in a store that has them in itself; a private key is no certificate, nor is nonsense."""
    one, two = (authority.sign(name).read_text() for name in ("one", "two"))
    only = [
        text[text.index("-----BEGIN CERT") : text.index("-----END CERT")] + "-----END CERTIFICATE-----"
        for text in (one, two)
    ]
    path = "truststore/mine"
    assert (await _at(get, "PUT", path, {"type": "ManagedCertificateStore"}))[0] == 201
    assert (await _at(get, "GET", path))[1]["statistics"] == {"certificateCount": 0}
    for each in (only[0], "".join(only[1].splitlines()[1:-1]), only[0]):
        assert (await _at(get, "POST", f"{path}/addCertificate", {"certificate": each}))[0] == 200
    told = (await _at(get, "GET", path))[1]
    assert [each["subjectName"] for each in told["certificateDetails"]] == ["CN=one", "CN=two"]
    assert len(told["storedCertificates"]) == 2
    which = [{name: told["certificateDetails"][0][name] for name in ("issuerName", "serialNumber")}]
    assert (await _at(get, "POST", f"{path}/removeCertificates", {"certificates": which}))[0] == 200
    assert [each["subjectName"] for each in (await _at(get, "GET", path))[1]["certificateDetails"]] == ["CN=two"]
    key = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"
    for operation, said in (
        ("addCertificate", {"certificate": "nonsense"}),
        ("removeCertificates", {"certificates": ["nonsense"]}),
    ):
        assert (await _at(get, "POST", f"{path}/{operation}", said))[0] == 422
    assert (await _at(get, "PUT", path, {"storedCertificates": [only[0], key]}))[0] == 422
    assert "PRIVATE KEY" not in store.records["trust_store", "mine"].value.decode()
    pem = {"type": "NonJavaTrustStore", "certificatesUrl": data_url(authority.path.read_bytes())}
    await _at(get, "PUT", "truststore/pem", pem)
    assert (await _at(get, "POST", "truststore/pem/addCertificate", {"certificate": only[0]}))[0] == 405
