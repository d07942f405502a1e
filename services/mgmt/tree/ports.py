"""Port: of the settings, or on record (`../../common/clients/ports.py`); gateways listen, and say so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from services.common import watchers
from services.common.config import Settings
from services.common.errors import Unavailable
from services.common.invalid import told
from services.common.ports import state as state_of_ports
from services.common.ports.port import RECORD_KIND, Terms
from services.common.ports.port import Port as Kept
from services.common.ports.state import Account, Listed, listed
from services.mgmt.certificates import of_settings
from services.mgmt.model.configured_object import ACTIVE, QUIESCED, STOPPED, ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.port import Port
from services.mgmt.tree.category import Keeper, Own, Source, readable
from services.mgmt.tree.house import House
from services.mgmt.tree.set_aside import SetAside, is_aside

_TYPE: Final = "AMQP"
_TRANSPORTS: Final = {"TCP": "plain", "SSL": "tls", "WS": "websocket"}
_ONE_ENGINE: Final = ("AMQP_0_8", "AMQP_0_9", "AMQP_0_9_1")
_PROTOCOLS: Final = {"amqp-0-9": _ONE_ENGINE, "amqp-1-0": ("AMQP_1_0",)}
_NAMES: Final = {
    "port": "port",
    "mechanisms": "mechanisms",
    "authenticationProvider": "authentication_provider",
    "unsecuredPasswords": "unsecured_passwords",
}


class Ports(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Port
    depends = (RECORD_KIND, state_of_ports.RECORD_KIND, watchers.RECORD_KIND)
    fresh = frozenset({Source.CONNECTIONS})
    changes = True

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._changing = asyncio.Lock()
        self._aside = SetAside(house, Port.category, RECORD_KIND)

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        settings, mirror = self.house.settings, self.house.mirror
        host = settings.http_host
        # All at one moment: one that is stopped or started meanwhile would be in neither.
        ports, aside = readable(Kept, mirror.values(RECORD_KIND)), list(self._aside.all())
        yield (
            {"name": "http", "type": "HTTP", "port": settings.http_port, "bindingAddress": host, "protocols": ["HTTP"]},
            "",
        )
        accounts = readable(Account, mirror.values(state_of_ports.RECORD_KIND))
        watching = mirror.tables[watchers.RECORD_KIND].items()
        gateways = [name for name, kept in watching if kept.value.get("role") == "gateway"]
        for each in listed(ports, accounts, gateways):
            secured = _secured(settings) if each.port.takes("tls") else {}
            yield {**_described(each), **secured, "state": _state(each)}, ""
        for _, (state, value) in aside:
            for port in readable(Kept, [value]):
                told = _described(Listed(port=port, of_settings=False, gateways=()))
                yield {**told, "state": state, "desiredState": state}, ""

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        limit = {"connectionLimit": max(found.value("maxOpenConnections"), 0)}
        if found.actual["type"] != _TYPE:  # whoever comes over HTTP is nobody's connection
            return limit
        return {"connectionCount": self.house.connected.count_by_port[found.actual["name"]], **limit}

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - the broker
        if (type_ := wanted.get("type", _TYPE)) != _TYPE:
            raise IllegalConfiguration(f"attribute 'type': ports of {type_} are of the settings; see docs/settings.md")
        await self.house.ports.put(name, _terms(wanted))
        await self.house.seen(RECORD_KIND, name, there=True)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """Of what it is like at its turn: others change it as well."""
        name, mirror = found.actual["name"], self.house.mirror
        async with self._changing:
            now = self.as_now(found)
            self._aside.check_changes(now)
            merged = {key: value for key, value in {**now.actual, **wanted}.items() if key in Port.attributes}
            port = await self.house.ports.put(name, _terms(merged))
            await self.house.arrived(
                RECORD_KIND,
                lambda: name in mirror.tables[RECORD_KIND] and mirror.tables[RECORD_KIND][name].raw == port.to_json(),
            )

    async def move(self, found: ConfiguredObject, state: str, who: str) -> None:
        async with self._changing:
            now = self.as_now(found)
            if state != ACTIVE:
                await self._stop(now, state, who)
            elif is_aside(now):
                await self._start(now, who)

    async def _start(self, found: ConfiguredObject, who: str) -> None:
        name, value = found.actual["name"], self._aside.value(found)
        await self.house.ports.put(name, Terms(**{key: value[key] for key in value.keys() & Terms.model_fields.keys()}))
        await self.house.seen(RECORD_KIND, name, there=True)
        await self._aside.back(found, who)

    async def _stop(self, found: ConfiguredObject, state: str, who: str) -> None:
        """Nobody comes any more; who is there stays while it is QUIESCED, and is told to go before it is STOPPED.

        Where not all of them hear that, it is QUIESCED: it can be stopped again.
        """
        name = found.actual["name"]
        if not is_aside(found):
            await self._aside.away(found, QUIESCED, who)
            await self._remove(name)
        if state == STOPPED:
            await self._empty(name)
        now = self.as_now(found)
        if is_aside(now) and now.value("desiredState") != state:
            await self._aside.away(now, state, who)

    async def _empty(self, name: str) -> None:
        with contextlib.suppress(Unavailable):  # a gateway that does not say so does not listen to anything
            await self.house.mirror.until(lambda: name not in self._listening())
        connected = self.house.connected
        (await connected.close_all(await connected.of_port(name), f"port '{name}' is stopped")).check()

    def _listening(self) -> set[str]:
        """Ports of which some gateway says that it has them."""
        accounts = readable(Account, self.house.mirror.values(state_of_ports.RECORD_KIND))
        return {served.port.name for each in accounts for served in each.served}

    async def delete(self, found: ConfiguredObject) -> None:
        if is_aside(found):
            await self._aside.delete(found)
        else:
            await self._remove(found.actual["name"])

    async def _remove(self, name: str) -> None:
        await self.house.ports.remove(name)
        await self.house.seen(RECORD_KIND, name, there=False)


def _described(each: Listed) -> dict[str, Any]:
    port = each.port
    spoken = [name for protocol in port.protocols for name in _PROTOCOLS.get(protocol, (protocol,))]
    found: dict[str, Any] = {
        "name": port.name,
        "type": _TYPE,
        "port": port.port,
        "bindingAddress": port.host or "*",
        "protocols": spoken,
        "mechanisms": list(port.mechanisms),
        "maxOpenConnections": port.most or -1,
        "boundTo": sorted(at for where in each.gateways for at in where.at),
        "trouble": [f"{where.gateway}: {why}" for where in each.gateways if (why := where.trouble or where.amiss)],
    }
    if port.transports:
        found["transports"] = [name for name, its in _TRANSPORTS.items() if its in port.transports]
    if port.authentication_provider:
        found["authenticationProvider"] = port.authentication_provider
    if port.unsecured_passwords is not None:
        found["unsecuredPasswords"] = port.unsecured_passwords
    return found


def _state(each: Listed) -> str:
    """Of all gateways together."""
    troubles = {where.trouble for where in each.gateways}
    if not troubles:
        return "UNAVAILABLE"
    if troubles - {"", state_of_ports.NOT_SAID}:
        return "ERRORED"
    return "UNINITIALIZED" if state_of_ports.NOT_SAID in troubles else ACTIVE


def _secured(settings: Settings) -> dict[str, Any]:
    store = of_settings.shown(settings)
    return {"keyStore": store, "trustStores": of_settings.trusted(settings)} if store else {}


def _terms(wanted: Mapping[str, Any]) -> Terms:
    """Raises IllegalConfiguration for what no port is like here."""
    terms = {theirs: wanted[name] for name, theirs in _NAMES.items() if name in wanted}
    if "protocols" in wanted:
        terms["protocols"] = _protocols(wanted["protocols"])
    if not wanted.get("transports", _TRANSPORTS):
        raise IllegalConfiguration("attribute 'transports': a port that nobody may begin with is none; delete it")
    if set(wanted.get("transports", _TRANSPORTS)) != set(_TRANSPORTS):
        terms["transports"] = tuple(_TRANSPORTS[each] for each in wanted["transports"])
    host = wanted.get("bindingAddress", "*")
    terms |= {"host": "" if host == "*" else host, "most": max(wanted.get("maxOpenConnections", -1), 0)}
    try:
        return Terms.model_validate(terms)
    except ValidationError as error:
        raise IllegalConfiguration(told(error.errors())) from None


def _protocols(wanted: list[str]) -> tuple[str, ...]:
    found = tuple(protocol for protocol, names in _PROTOCOLS.items() if set(names) & set(wanted))
    covered = {name for protocol in found for name in _PROTOCOLS[protocol]}
    if missing := covered - set(wanted):
        raise IllegalConfiguration(
            f"attribute 'protocols': with the others of its family comes {', '.join(sorted(missing))}"
        )
    if unknown := set(wanted) - covered:
        raise IllegalConfiguration(f"attribute 'protocols': no port of AMQP speaks {', '.join(sorted(unknown))}")
    return found
