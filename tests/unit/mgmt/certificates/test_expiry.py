"""Certificates that are soon over, as health and the log tell them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.mgmt.certificates import KEY_STORE
from services.mgmt.certificates.expiry import Expiry
from services.mgmt.certificates.soon import soon_over
from services.mgmt.certificates.stores import Kept
from services.rpc.store_pb2 import Record
from tests.support.certificates import Authority


class Recorded(StoreClient):
    """A store with records in a list."""

    def __init__(self, *records: Record) -> None:
        self.records = list(records)

    async def list_records(self, kinds: Any) -> list[Record]:
        return [each for each in self.records if each.kind in kinds]


def _record(name: str, pem: Path) -> Record:
    certificate = pem.read_text().partition("-----BEGIN PRIVATE KEY")[0]
    kept = Kept(type="NonJavaKeyStore", certificates=(("", certificate),))
    return Record(kind=KEY_STORE, key=name, value=kept.to_json())


async def test_what_is_soon_over(authority: Authority, tmp_path: Path) -> None:
    """Is told of files of the settings and of records, once each day in the log, until it is renewed."""
    path, lasting = authority.sign("short", days=20), authority.sign("long", days=40)
    settings = Settings(data=tmp_path, tls_certificate=(path, lasting))
    looking = Expiry(settings, Recorded(_record("web", authority.sign("shorter", days=5)), _record("fine", lasting)))
    with capture_logs() as lines:
        for _ in range(2):
            await looking.look()
    told = [f"{path}: CN=short ends in 19 days", "key store 'web': CN=shorter ends in 4 days"]
    assert looking.notes() == {"certificates": "; ".join(told)}
    assert [each["which"] for each in lines] == told
    authority.sign("short", days=40)
    await looking.look()
    assert looking.notes() == {"certificates": told[1]}


def test_what_is_over(authority: Authority, tmp_path: Path) -> None:
    """Is told as such."""
    settings = Settings(data=tmp_path, tls_certificate=(authority.sign("late", days=0),))
    assert soon_over(settings, ()) == [f"{tmp_path}/late.pem: CN=late is over"]


def test_what_cannot_be_read(authority: Authority, tmp_path: Path) -> None:
    """Says nothing, and hides none of the others."""
    broken = Kept(type="NonJavaTrustStore", certificates=(("", "no certificate"),)).to_json()
    records = [Record(kind=KEY_STORE, key="a", value=broken), Record(kind=KEY_STORE, key="b", value=b"{}")]
    records.append(_record("c", authority.sign("short", days=20)))
    assert soon_over(Settings(data=tmp_path), records) == ["key store 'c': CN=short ends in 19 days"]


async def test_nothing_to_look_at(tmp_path: Path) -> None:
    """Without certificates there is nothing to say."""
    looking = Expiry(Settings(data=tmp_path), Recorded())
    await looking.look()
    assert looking.notes() == {}
