"""Operations on the tree itself: all of a configuration, who asks, and what users keep."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.authentication.described import Described
from services.common.ports.port import Terms
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.preferences.preference import Said, Who
from services.mgmt.rest.model.schemas import operations_of
from services.mgmt.service import Service
from services.mgmt.tree.carried_out import CARRIED_OUT
from services.mgmt.tree.tree import Tree
from tests.unit.mgmt.test_providers import LDAP


class _Anna:
    name = "anna"

    async def groups(self) -> frozenset[str]:
        return frozenset({"staff", "all"})


_ANNA: Any = _Anna()


@pytest.fixture
async def tree(mgmt: Service) -> Tree:
    await mgmt._tree.ready(())
    return mgmt._tree


async def _carry_out(tree: Tree, operation: str, **told: object) -> Any:
    return await CARRIED_OUT[operation](tree, _ANNA, tree.broker, told)


async def test_all_of_the_configuration(tree: Tree) -> None:
    """What was set, below what it is below; no secret of it, whatever is asked, and nothing that passes by itself."""
    await tree.house.providers.put("staff", Described(type="ldap", options=LDAP))
    await tree.house.ports.put("inner", Terms(port=5699))
    await tree.house.mirror.until(lambda: bool(tree.house.mirror.tables["port"]))
    told = await _carry_out(tree, "extractConfig")
    [inner] = [each for each in told["ports"] if each["name"] == "inner"]
    assert (inner["port"], "statistics" in inner, "boundTo" in inner) == (5699, False, False)
    providers = {each["name"]: each for each in told["authenticationproviders"]}
    assert [each["name"] for each in providers["internal"]["users"]] == ["guest"]
    assert "hush" not in str(told)
    assert "$argon2" not in str(told)
    with pytest.raises(IllegalConfiguration, match="told to nobody"):
        await _carry_out(tree, "extractConfig", includeSecureAttributes=True)


async def test_who_asks(tree: Tree) -> None:
    """By name, and by groups in their order."""
    assert (await _carry_out(tree, "getUser"), await _carry_out(tree, "getGroups")) == ("anna", ["all", "staff"])


async def test_a_user_whose_preferences_are_purged(tree: Tree) -> None:
    """Has none at any object; others have theirs."""
    for name in ("anna", "bert"):
        await tree.preferences.append(tree.broker, Who(name, frozenset()), [Said(name="p", type="X-t", value={})])
    await _carry_out(tree, "purgeUser", username="anna", origin="internal")
    left = [tree.preferences.own(tree.broker, Who(name, frozenset())) for name in ("anna", "bert")]
    assert [len(each) for each in left] == [0, 1]


def test_operations_are_described(tree: Tree) -> None:
    """With their parameters, those that change something apart from the others."""
    kind = tree.categories["broker"].kind
    assert "- `purgeUser(origin: string = null, username: string)`: Deletes" in operations_of(kind, modifying=True)
    assert "- `extractConfig(includeSecureAttributes: boolean = false)`" in operations_of(kind, modifying=False)
    assert "purgeUser" not in operations_of(kind, modifying=False)
