"""A stack that begins: its first user, with all that it may do."""

from __future__ import annotations

from services.common.clients.overtaken import decided_again
from services.common.first_user import FirstUser
from services.mgmt.access.grants import Grants
from services.mgmt.users import Users


@decided_again
async def begin(users: Users, grants: Grants, first: FirstUser) -> None:
    """Once, at one moment: where somebody has deleted all users since, the first one, whose password everybody knows,
    does not come back. Whoever runs the stack makes another one by `hopline users add`.
    """
    await users.disguise()
    beginning = await grants.beginning(first.name)
    if beginning.records:
        await users.seed(first, beginning)
