"""KeyStore and TrustStore: of the settings, or on record (`../certificates`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, Final

from services.common.errors import AccessRefused
from services.common.sealing import Sealing
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.certificates import KEY_STORE, TRUST_STORE, managed_certificate_store, of_settings
from services.mgmt.certificates.details import days_until, details, to_pem
from services.mgmt.certificates.kind import UNREADABLE, Named
from services.mgmt.certificates.of_settings import OfSettings
from services.mgmt.certificates.stores import Kept, Stores
from services.mgmt.model.attribute import MASK
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import NotOffered
from services.mgmt.model.key_store import KeyStore, TrustStore
from services.mgmt.tree.category import Keeper, Own, readable
from services.mgmt.tree.house import House
from services.mgmt.tree.mirror import Kept as Record
from services.mgmt.tree.recorded import record

_OF_ALL: Final = frozenset(ConfiguredObject.attributes)


class _Stores(Keeper):
    """What both have in common. Those of the settings are read from their files at each request."""

    sees = CONFIGURE
    changes = True
    record: ClassVar[str]

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._recorded: dict[str, tuple[Record, list[dict[str, Any]]]] = {}  # read once, not at each look

    @cached_property
    def _stores(self) -> Stores:
        return Stores(self.record, self.house.store, Sealing.of(self.house.settings))

    @abstractmethod
    def _of_settings(self) -> Iterable[OfSettings]:
        """Those that the settings name."""

    def _certified(self, found: Sequence[Named]) -> dict[str, Any]:
        """What its certificates say."""
        return {"certificateDetails": [details(each) for each in found]}

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        former, recorded = self._recorded, {}
        for name, kept in sorted(self.house.mirror.tables[self.record].items()):
            before = former.get(name)
            told = before[1] if before and before[0] is kept else self._told(kept)
            recorded[name] = kept, told
            yield from (({"name": name, **each}, "") for each in told)
        self._recorded = recorded
        for its in self._of_settings():
            certified = self._readable(partial(tuple, its.certificates))
            yield {"name": its.name, **its.attributes, "ofSettings": True, **certified}, ""

    def _told(self, kept: Record) -> list[dict[str, Any]]:
        """One, or none where it is no such record."""
        return [{**_told(each), **self._readable(each.named)} for each in readable(Kept, [kept.value])]

    def _readable(self, read: Callable[[], Sequence[Named]]) -> dict[str, Any]:
        """Nothing for one that cannot be read, which hides none of the others, and can be deleted."""
        try:
            return self._certified(read())
        except UNREADABLE:
            return {**self._certified(()), "state": "ERRORED"}

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        ends = [each["validUntil"] for each in found.actual["certificateDetails"]]
        return {"certificateCount": len(ends), **({"daysUntilExpiry": days_until(min(ends))} if ends else {})}

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - the broker
        type_, its = wanted.get("type", self.kind.types[0]), {key: wanted[key] for key in wanted.keys() - _OF_ALL}
        await self._put(name, await self._stores.create(name, type_, its))

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        name = _on_record(found)
        await self._put(name, await self._stores.change(name, wanted))

    async def delete(self, found: ConfiguredObject) -> None:
        name = _on_record(found)
        await self._stores.remove(name)
        record(self.house.audit, self.record, "deleted", name)
        await self.house.seen(self.record, name, there=False)

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401, ARG002 - they have none
        if operation == "getCertificate":
            return found.actual["encodedCertificate"]
        return await self.update(found, {})  # reload

    async def _put(self, name: str, value: bytes) -> None:
        record(self.house.audit, self.record, "put", name)
        await self.house.arrived(self.record, lambda: self._raw(name) == value)

    def _raw(self, name: str) -> bytes:
        kept = self.house.mirror.tables[self.record].get(name)
        return kept.raw if kept else b""


class KeyStores(_Stores):
    """See services.mgmt.tree.category.Category."""

    kind = KeyStore
    record = KEY_STORE

    def _of_settings(self) -> Iterable[OfSettings]:
        return of_settings.key_stores(self.house.settings)

    def _certified(self, found: Sequence[Named]) -> dict[str, Any]:
        told = super()._certified(found)
        if not found:
            return {**told, "encodedCertificate": ""}
        first = told["certificateDetails"][0]
        valid = {"certificateValidStart": first["validFrom"], "certificateValidEnd": first["validUntil"]}
        return {**told, **valid, "subjectName": first["subjectName"], "encodedCertificate": to_pem(found[0])}


class TrustStores(_Stores):
    """See services.mgmt.tree.category.Category."""

    kind = TrustStore
    record = TRUST_STORE

    def _of_settings(self) -> Iterable[OfSettings]:
        return of_settings.trust_stores(self.house.settings)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        await super().create(parent, name, _as_kept(wanted))

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        await super().update(found, _as_kept(wanted))

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - each its own
        if (change := _CHANGES.get(operation)) is None:
            return await super().invoke(found, operation, arguments)
        if found.actual["type"] != managed_certificate_store.TYPE:
            raise NotOffered(
                f"{operation} is of a {managed_certificate_store.TYPE}, and this is a {found.actual['type']}"
            )
        name = _on_record(found)
        return await self._put(name, await self._stores.change(name, change(arguments)))


_CHANGES: Final[Mapping[str, Callable[[Mapping[str, Any]], managed_certificate_store.Change]]] = {
    "addCertificate": lambda told: managed_certificate_store.adding(told["certificate"]),
    "removeCertificates": lambda told: managed_certificate_store.removing(told["certificates"]),
}


def _as_kept(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Records have texts only."""
    if (stored := wanted.get(managed_certificate_store.STORED)) is None:
        return wanted
    return {**wanted, managed_certificate_store.STORED: managed_certificate_store.together(stored)}


def _told(kept: Kept) -> dict[str, Any]:
    its: dict[str, Any] = dict(kept.attributes)
    file = {"file": kept.file} if kept.file else {}
    if kept.type == managed_certificate_store.TYPE:
        its[managed_certificate_store.STORED] = [pem for _, pem in kept.certificates]
    return {"type": kept.type, **its, **dict.fromkeys(kept.sealed, MASK), **file, "ofSettings": False}


def _on_record(found: ConfiguredObject) -> str:
    """Its name. Raises AccessRefused for one of the settings."""
    name: str = found.actual["name"]
    if found.actual["ofSettings"]:
        raise AccessRefused(f"{found.category} '{name}' is of the settings, and changes with them and their files only")
    return name
