"""A stack that begins: its first user, with all that it may do."""

from __future__ import annotations

from services.common.clients.overtaken import decided_again
from services.common.first_user import FirstUser
from services.mgmt.access.grants import Grants
from services.mgmt.users import Users


@decided_again
async def begin(users: Users, grants: Grants, first: FirstUser) -> None:
    """Once, at one moment: where all users were deleted since, the first one, whose password is well known,
    does not come back. Whoever runs the stack makes another one by `hopline users add`.
    """
    await users.disguise()
    beginning = await grants.beginning(first.name)
    if beginning.records:
        await users.seed(first, beginning)
