"""States of what can stop: nobody acts by it then, and it is as it was when it is back."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.authentication.described import RECORD_KIND as PROVIDER
from services.common.authentication.described import Described
from services.common.errors import AccessRefused, PreconditionFailed, Unavailable
from services.common.ports.port import RECORD_KIND as PORT
from services.common.ports.port import Port, Terms
from services.common.ports.state import NOT_SAID, Listed, Where
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration, IllegalTransition
from services.mgmt.service import Service
from services.mgmt.tree import ports
from services.mgmt.tree.changes import Changes
from services.mgmt.tree.gateways import Heard
from services.mgmt.tree.tree import Tree
from tests.support.fake_store import FakeStore
from tests.unit.mgmt.test_providers import LDAP


class _Somebody:
    name = "anna"


_WHO: Any = _Somebody()


@pytest.fixture
async def tree(mgmt: Service) -> Tree:
    await mgmt._tree.ready(())
    return mgmt._tree


async def _change(tree: Tree, category: str, *path: str, **said: object) -> ConfiguredObject | None:
    changes = Changes(tree, category)
    found = tree.one(category, path)
    wanted, refusal = changes.wanted(found, path, said)
    if refusal:
        raise refusal
    return await changes.update(_WHO, found, wanted)


async def _port(tree: Tree) -> None:
    await tree.house.ports.put("inner", Terms(port=5699, most=7, protocols=("amqp-1-0",)))
    await tree.house.seen(PORT, "inner", there=True)


def _states(found: ConfiguredObject | None) -> tuple[str, str]:
    assert found
    return found.value("state"), found.value("desiredState")


async def test_a_port_that_is_quiesced(tree: Tree, store: FakeStore) -> None:
    """Has no record that a gateway would listen by, is told as it was, and is that again when it is started."""
    await _port(tree)
    record = store.records[PORT, "inner"]
    quiesced = await _change(tree, "port", "inner", desiredState="QUIESCED")
    assert _states(quiesced) == ("QUIESCED", "QUIESCED")
    assert (PORT, "inner") not in store.records
    assert quiesced
    assert (quiesced.value("port"), quiesced.value("maxOpenConnections")) == (5699, 7)
    assert quiesced.value("lastUpdatedBy") == "anna"
    with pytest.raises(PreconditionFailed, match="is QUIESCED: it is changed when it is ACTIVE"):
        await _change(tree, "port", "inner", port=5700)
    started = await _change(tree, "port", "inner", desiredState="ACTIVE")
    assert _states(started) == ("UNAVAILABLE", "ACTIVE")  # there is no gateway here
    assert store.records[PORT, "inner"].value == record.value
    assert await _change(tree, "port", "inner", port=5700)


async def test_a_port_that_is_stopped(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the connections that came by it; one that is only quiesced leaves them."""
    closed = list[tuple[str, str]]()

    async def of_port(name: str) -> list[str]:
        return [f"{name}.1", f"{name}.2"]

    async def close(name: str, reason: str) -> None:
        closed.append((name, reason))

    monkeypatch.setattr(tree.house.connected, "of_port", of_port)
    monkeypatch.setattr(tree.house.connected, "close", close)
    await _port(tree)
    await _change(tree, "port", "inner", desiredState="QUIESCED")
    assert closed == []
    assert _states(await _change(tree, "port", "inner", desiredState="STOPPED")) == ("STOPPED", "STOPPED")
    assert closed == [(f"inner.{number}", "port 'inner' is stopped") for number in (1, 2)]


async def test_a_port_that_is_stopped_when_a_gateway_does_not_answer(
    tree: Tree, store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody comes by it, and it is told where somebody may be yet: it is stopped when they are told to go as well."""
    silent = {"gateway-9"}

    async def heard() -> Heard:
        return Heard([], frozenset(silent))

    monkeypatch.setattr(tree.house.gateways, "heard", heard)
    await _port(tree)
    with pytest.raises(Unavailable, match="gateway-9 does not answer, and whoever is connected there stays"):
        await _change(tree, "port", "inner", desiredState="STOPPED")
    assert _states(tree.one("port", ["inner"])) == ("QUIESCED", "QUIESCED")
    assert (PORT, "inner") not in store.records
    silent.clear()
    assert _states(await _change(tree, "port", "inner", desiredState="STOPPED")) == ("STOPPED", "STOPPED")


async def test_a_stopped_port_is_deleted_or_made_anew(tree: Tree, store: FakeStore) -> None:
    """Nothing of it is left; who makes one of its name meanwhile, as the command line does, has made that."""
    await _port(tree)
    await _change(tree, "port", "inner", desiredState="STOPPED")
    await tree.house.ports.put("inner", Terms(port=5701))
    await tree.house.seen(PORT, "inner", there=True)
    assert (tree.one("port", ["inner"]).value("port"), _states(tree.one("port", ["inner"]))[1]) == (5701, "ACTIVE")
    await _change(tree, "port", "inner", desiredState="STOPPED")
    assert tree.one("port", ["inner"]).value("port") == 5701
    assert await _change(tree, "port", "inner", desiredState="DELETED") is None
    assert "inner" not in tree.categories["port"].children(tree.broker)
    assert not [key for key in store.records if "inner" in key[1]]


async def test_a_provider_that_is_stopped(tree: Tree, store: FakeStore) -> None:
    """Is on no record that gateways go by; its secrets are sealed as before, and told to nobody."""
    await tree.house.providers.put("staff", Described(type="ldap", options=LDAP))
    await tree.house.seen(PROVIDER, "staff", there=True)
    record = store.records[PROVIDER, "staff"]
    stopped = await _change(tree, "authenticationprovider", "staff", desiredState="STOPPED")
    assert _states(stopped) == ("STOPPED", "STOPPED")
    assert stopped
    assert "hush" not in str([stopped.value("options"), *store.records.values()])
    assert (PROVIDER, "staff") not in store.records
    with pytest.raises(IllegalTransition, match="is ACTIVE or STOPPED"):
        await _change(tree, "authenticationprovider", "staff", desiredState="QUIESCED")
    assert _states(await _change(tree, "authenticationprovider", "staff", desiredState="ACTIVE")) == (
        "ACTIVE",
        "ACTIVE",
    )
    assert store.records[PROVIDER, "staff"].value == record.value


@pytest.mark.parametrize(
    ("category", "path", "error"),
    [
        ("broker", (), IllegalTransition),
        ("user", ("internal", "guest"), IllegalTransition),
        ("port", ("http",), AccessRefused),
        ("authenticationprovider", ("internal",), AccessRefused),
    ],
)
async def test_what_does_not_stop_says_why(
    category: str, path: tuple[str, ...], error: type[Exception], tree: Tree
) -> None:
    """Because nothing would stand still by it, or since it is of the settings."""
    with pytest.raises(error, match=r"and never STOPPED: |of the settings, and changes with them only"):
        await _change(tree, category, *path, desiredState="STOPPED")
    assert _states(tree.one(category, path))[1] == "ACTIVE"


async def test_a_state_is_changed_by_itself(tree: Tree) -> None:
    """And nothing is made that does not act."""
    await _port(tree)
    with pytest.raises(IllegalConfiguration, match="by itself"):
        await _change(tree, "port", "inner", desiredState="STOPPED", port=5700)
    _, refusal = Changes(tree, "port").wanted(None, ["new"], {"port": 5702, "desiredState": "STOPPED"})
    assert isinstance(refusal, IllegalTransition)


@pytest.mark.parametrize(
    ("troubles", "state"),
    [
        ([], "UNAVAILABLE"),
        (["", ""], "ACTIVE"),
        (["", NOT_SAID], "UNINITIALIZED"),
        (["", NOT_SAID, "address in use"], "ERRORED"),
    ],
)
def test_the_state_of_a_port(troubles: list[str], state: str) -> None:
    """Is that of all gateways together."""
    wheres = tuple(Where(gateway=str(number), trouble=trouble) for number, trouble in enumerate(troubles))
    assert ports._state(Listed(port=Port(name="p", port=1), of_settings=False, gateways=wheres)) == state
