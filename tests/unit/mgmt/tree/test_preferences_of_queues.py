"""Preferences at what is in virtual hosts, at a whole broker."""

from __future__ import annotations

from tests.unit.mgmt.tree.conftest import HOST, Managed


async def test_a_queue_called_userpreferences(managed: Managed) -> None:
    """Is a queue, and has preferences; the next of its name has none of its."""
    path = f"queue/{HOST}/userpreferences"
    for times in range(2):
        assert (await managed("PUT", path, {}))[0] == 201
        assert (await managed("GET", path))[1]["name"] == "userpreferences"
        assert await managed("GET", f"{path}/userpreferences") == (200, {}), times
        assert (await managed("PUT", f"{path}/userpreferences/X-a/b%252Fc", {}))[0] == 200
        assert [each["name"] for each in (await managed("GET", f"{path}/visiblepreferences/X-a"))[1]] == ["b/c"]
        assert (await managed("GET", f"{path}/userpreferences/X-a/b%252Fc"))[0] == 200
        assert (await managed("DELETE", path))[0] == 200
    assert (await managed("GET", f"{path}/userpreferences"))[0] == 404


async def test_what_does_not_last(managed: Managed) -> None:
    """Keeps none: a queue that is not durable, or a client's connection."""
    await managed("PUT", f"queue/{HOST}/q", {"durable": False})
    assert (await managed("PUT", f"queue/{HOST}/q/userpreferences/X-a/b", {}))[0] == 422
