"""An authenticator for tests, which knows what records say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from services.common.authentication.authenticator import Authenticator
from services.common.authentication.described import RECORD_KIND as PROVIDER_KIND
from services.common.authentication.described import Described
from services.common.authentication.known_users import KINDS
from services.common.config import Settings
from services.common.users import RECORD_KIND, User
from services.rpc import store_pb2

INTERNAL = "internal"


def authenticator_of(older: Any = None, **settings: Any) -> Authenticator:
    """Nothing is on record yet."""
    return Authenticator(Settings(**settings), older)


async def watch(*batches: store_pb2.Records) -> AsyncIterator[store_pb2.Records]:
    """Of what a store would tell."""
    for batch in batches:
        yield batch


def user_record(user: User, *, deleted: bool = False) -> store_pb2.Record:
    """As mgmt writes it."""
    return store_pb2.Record(kind=RECORD_KIND, key=user.name, value=user.to_json(), deleted=deleted)


class Records:
    """In place of the store, for code that lists records."""

    def __init__(self, *records: store_pb2.Record) -> None:
        self.records = list(records)

    async def list_records(self, kinds: Iterable[str]) -> list[store_pb2.Record]:
        assert set(kinds) <= set(KINDS)
        return self.records


def provider_records(**told: Any) -> list[store_pb2.Record]:
    """Records of providers: of each its type and options; secrets are not sealed."""
    described = {
        name: Described(type=options["type"], options={key: value for key, value in options.items() if key != "type"})
        for name, options in told.items()
    }
    return [store_pb2.Record(kind=PROVIDER_KIND, key=name, value=each.to_json()) for name, each in described.items()]


@asynccontextmanager
async def providing(settings: Any = None, **told: Any) -> AsyncIterator[Authenticator]:
    """An authenticator that has these providers; what they had begun is ended."""
    authenticator = authenticator_of(**(settings or {}))
    await authenticator.follow(watch(store_pb2.Records(snapshot=True, last=True, records=provider_records(**told))))
    yield authenticator
    await authenticator.stop()
