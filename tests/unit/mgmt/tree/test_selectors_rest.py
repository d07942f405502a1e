"""Selectors of bindings in Broker-J's REST, at a whole broker."""

from __future__ import annotations

from tests.unit.mgmt.tree.conftest import HOST, Managed

SELECTOR = "x-filter-jms-selector"


async def test_a_selector_of_a_binding(managed: Managed) -> None:
    """Is told as it was said, and replaced by another one; what is none binds nothing."""
    await managed("POST", f"queue/{HOST}", {"name": "chosen"})
    await managed("PUT", f"exchange/{HOST}/e", {"type": "fanout"})
    path, of = f"exchange/{HOST}/e/bind", {"destination": "chosen", "replaceExistingArguments": True}
    for selector in ("a = 1", "a = 2"):
        assert await managed("POST", path, {**of, "arguments": {SELECTOR: selector}}) == (200, True)
        [told] = (await managed("GET", f"exchange/{HOST}/e"))[1]["bindings"]
        assert told["arguments"] == {SELECTOR: selector}
    client = await managed.house.connect()
    for number in (1, 2):
        client.publish(b"m", "", exchange="e", headers={"a": number})
    status, answer = await managed("POST", path, {**of, "arguments": {SELECTOR: "a ="}})
    assert (status, SELECTOR in answer["errorMessage"]) == (409, True)
    assert len((await managed("GET", f"exchange/{HOST}/e"))[1]["bindings"]) == 1
    while (await client.declare("chosen", passive=True)).message_count < 1:
        pass
    assert await managed("POST", f"queue/{HOST}/chosen/clearQueue", {}) == (200, 1)
