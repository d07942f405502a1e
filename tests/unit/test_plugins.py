from __future__ import annotations

import inspect
import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from services.common import plugins
from services.common.access.control import AccessControl
from services.common.authentication.provider import Provider
from services.common.credentials import CredentialKind
from services.common.errors import InternalError
from services.common.message import MessageFormat
from services.common.topology.exchanges.exchange_type import ExchangeType
from services.gateway.management.forms import Form
from services.gateway.protocols.engine import Engine
from services.gateway.sasl import Mechanism
from services.gateway.transport.kind import Transport
from services.mgmt.certificates.kind import Kind as CertificateStore
from services.mgmt.loggers.kind import LoggerKind
from services.mgmt.tree.category import Category
from services.queue.machine.order.ready import Ready
from services.queue.machine.overflow import OverflowPolicy
from services.queue.partitions.share import Placement
from services.store.provider import Provider as Store

# What the kinds of each group are: what its entry points name, or what that makes when it is called.
CONTRACTS: dict[str, type] = {
    "access_control": AccessControl,
    "categories": Category,
    "protocols": Engine,
    "message_formats": MessageFormat,
    "management_forms": Form,
    "exchange_types": ExchangeType,
    "queue_types": Ready,
    "overflow_policies": OverflowPolicy,
    "placements": Placement,
    "store_providers": Store,
    "sasl_mechanisms": Mechanism,
    "transports": Transport,
    "authentication_providers": Provider,
    "credential_kinds": CredentialKind,
    "key_stores": CertificateStore,
    "trust_stores": CertificateStore,
    "broker_loggers": LoggerKind,
    "virtual_host_loggers": LoggerKind,
}
INSTALLED = [point for group in CONTRACTS for point in entry_points(group=f"hopline.{group}")]


def _declared() -> dict[str, dict[str, str]]:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    points: dict[str, dict[str, str]] = project["entry-points"]
    return points


def _members(kind: type) -> dict[str, Any]:
    """Public attributes, those that are only annotated too."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        found |= dict.fromkeys(getattr(base, "__annotations__", {})) | vars(base)
    return {name: value for name, value in found.items() if not name.startswith("_")}


def _parameters(method: Any) -> list[tuple[str, Any]]:
    return [(name, each.kind) for name, each in inspect.signature(method).parameters.items()]


def _kind_of(loaded: Any) -> type:
    """The class itself, the class of an instance, or what a function says that it returns."""
    if inspect.isclass(loaded):
        return loaded
    if inspect.isfunction(loaded):
        made: type = get_type_hints(loaded)["return"]
        return made
    return type(loaded)


def test_every_group_has_a_contract() -> None:
    """No group of plug-ins is without a Protocol that says what its kinds can do."""
    assert {group.removeprefix("hopline.") for group in _declared()} == set(CONTRACTS)


def test_installed_as_declared() -> None:
    """The installation knows the table in pyproject.toml; if this fails, install again."""
    installed = {(point.group, point.name, point.value) for point in INSTALLED}
    declared = {(group, name, value) for group, points in _declared().items() for name, value in points.items()}
    assert declared <= installed


def test_names_are_unique() -> None:
    """Within a group, a name means one thing."""
    names = [(point.group, point.name) for point in INSTALLED]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("point", INSTALLED, ids=lambda point: f"{point.group}-{point.name}")
def test_satisfies_its_contract(point: EntryPoint) -> None:
    """Every entry point loads, and has each member of its group's Protocol, methods with the same parameters."""
    contract = CONTRACTS[point.group.removeprefix("hopline.")]
    kind = _kind_of(plugins.load(point.group.removeprefix("hopline."), point.name))
    assert kind is not contract, "a factory says which class it makes"
    members = _members(kind)
    for name, wanted in _members(contract).items():
        if inspect.isfunction(wanted):
            assert _parameters(members[name]) == _parameters(wanted), name
        else:
            assert name in members or name in _set_by_init(kind), name


def _set_by_init(kind: type) -> set[str]:
    """Attributes that `__init__` assigns, and slots."""
    slots = {name for base in kind.__mro__ for name in getattr(base, "__slots__", ())}
    return slots | {name for base in kind.__mro__[:-1] for name in _assigned(vars(base).get("__init__"))}


def _assigned(method: Any) -> set[str]:
    return set(method.__code__.co_names) if inspect.isfunction(method) else set()


def test_unknown_name() -> None:
    """The error about a kind that is not installed names those that are."""
    with pytest.raises(InternalError, match=r"no exchange_types named 'x-nope'; installed: .*topic"):
        plugins.load("exchange_types", "x-nope")
