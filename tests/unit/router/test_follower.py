from __future__ import annotations

import pytest

from services.common.clients.store import StoreClient
from services.common.errors import Unavailable
from services.router.follower import Follower
from services.router.topology.kinds import Kinds
from services.router.topology.topology import Topology


def _empty() -> Topology:
    return Topology(Kinds({}, set(), set()), 4, lambda: 1, str)


@pytest.mark.parametrize(("hears_store", "cause"), [(True, "see that it runs"), (False, "the store does not answer")])
async def test_why_it_answers_nothing(hears_store: bool, cause: str) -> None:
    """A router without a place names the store as the cause where it does not hear from it either."""
    store = StoreClient("unix:/nowhere")
    follower = Follower(store, "router-2", _empty, lambda: hears_store)
    with pytest.raises(Unavailable, match=f"does not hear from the one that writes: {cause}"):
        follower.describe("")
    await follower.stop(leave=False)
    await store.close()
