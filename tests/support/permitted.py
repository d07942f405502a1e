"""Users that may do everything, or what a test says."""

from __future__ import annotations

from services.common.access import records
from services.common.access.records import AclText, Permission, TopicPermission
from services.common.audit.entry import Entry
from services.common.authentication.principal import Principal
from services.common.clients.access import Access
from services.gateway.sessions.permitted import Permits, Permitted
from services.rpc.store_pb2 import Record


def everything(user: str = "guest") -> Permitted:
    """Of a user that may do everything."""
    return Permits(Access(["allow_all"])).of(user, "")


class Ruled:
    """A user, and what is set for it: `permitted` hears of it as that of a connection does."""

    def __init__(
        self,
        user: str = "guest",
        controls: tuple[str, ...] = ("acl", "permissions"),
        signed_in: Principal | None = None,
    ) -> None:
        self.access = Access(controls)
        self.access.rules.begun = True
        self.denied: list[Entry] = []
        self._permits = Permits(self.access)
        self._permits.tell = self.denied.append  # type: ignore[method-assign]
        self.permitted = self._permits.of(user, "127.0.0.1", signed_in=signed_in)

    def set(self, *kept: Permission | TopicPermission | AclText) -> None:
        """From now on."""
        kinds = {Permission: records.PERMISSION, TopicPermission: records.TOPIC_PERMISSION, AclText: records.ACL}
        for each in kept:
            self.access.rules.apply(Record(kind=kinds[type(each)], key=each.key, value=each.to_json()))
        for listener in self.access.listeners:
            listener()
