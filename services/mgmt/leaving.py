"""A user that goes, with all that it may do."""

from __future__ import annotations

from services.mgmt.access.grants import Grants
from services.mgmt.users import Users


async def delete_user(users: Users, grants: Grants, name: str) -> None:
    """Raises NotFound. Permissions go first: where this ends halfway the user is there yet, may do nothing, and can be
    deleted again; the other way round the next of that name would have them.
    """
    await users.check(name)
    await grants.forget_user(name)
    await users.delete(name)
