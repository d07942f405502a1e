"""The versions that the engine speaks, the newest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Final

from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.methods import (
    access,
    basic,
    channel,
    confirm,
    connection,
    exchange,
    queue,
    tx,
)
from services.gateway.protocols.amqp_0_9.methods_0_8 import basic as basic_0_8
from services.gateway.protocols.amqp_0_9.methods_0_8 import channel as channel_0_8
from services.gateway.protocols.amqp_0_9.methods_0_8 import connection as connection_0_8
from services.gateway.protocols.amqp_0_9.methods_0_9 import basic as basic_0_9
from services.gateway.protocols.amqp_0_9.methods_0_9 import channel as channel_0_9
from services.gateway.protocols.amqp_0_9.methods_0_9 import connection as connection_0_9
from services.gateway.protocols.amqp_0_9.version import Version


def _declared(modules: Iterable[ModuleType]) -> Mapping[int, type[Method]]:
    found = [kind for module in modules for kind in vars(module).values() if hasattr(kind, "code")]
    return {kind.code: kind for kind in found}


_NEWEST = _declared((connection, channel, exchange, queue, basic, tx, confirm))
# What 0-9-1 has, and RabbitMQ adds to it, that the older ones do not.
_LATER = {
    kind.code
    for kind in (
        exchange.Bind, exchange.BindOk, exchange.Unbind, exchange.UnbindOk, basic.Recover, basic.RecoverOk,
        connection.UpdateSecret, connection.UpdateSecretOk,
    )
}  # fmt: skip
# What both of the older ones have in place of it.
_OLDER = {code: kind for code, kind in _NEWEST.items() if code not in _LATER} | {
    **_declared((access,)),
    basic_0_9.RecoverSync.code: basic.Recover,
    basic_0_9.RecoverSyncOk.code: basic.RecoverOk,
}
_RECOVER: Mapping[type[Method], type[Method]] = {
    basic.Recover: basic_0_9.RecoverSync,
    basic.RecoverOk: basic_0_9.RecoverSyncOk,
}
_NO_UNEXPECTED_FRAME = {505: 501}

AMQP_0_9_1: Final = Version(name="AMQP 0-9-1", header=b"AMQP\x00\x00\x09\x01", major=0, minor=9, methods=_NEWEST)
AMQP_0_9: Final = Version(
    name="AMQP 0-9",
    header=b"AMQP\x01\x01\x00\x09",
    major=0,
    minor=9,
    methods={**_OLDER, **_declared((connection_0_9, channel_0_9))},
    layouts=_RECOVER,
    codes=_NO_UNEXPECTED_FRAME,
)
AMQP_0_8: Final = Version(
    name="AMQP 0-8",
    header=b"AMQP\x01\x01\x08\x00",
    major=8,
    minor=0,
    methods={
        **{code: kind for code, kind in _OLDER.items() if kind not in (connection.Close, connection.CloseOk)},
        connection_0_8.Redirect.code: connection_0_8.Redirect,
        connection_0_8.Close.code: connection.Close,
        connection_0_8.CloseOk.code: connection.CloseOk,
        channel_0_8.Alert.code: channel_0_8.Alert,
    },
    layouts={
        **_RECOVER,
        connection.Close: connection_0_8.Close,
        connection.CloseOk: connection_0_8.CloseOk,
        channel.OpenOk: channel_0_8.OpenOk,
        basic.Consume: basic_0_8.Consume,
    },
    codes=_NO_UNEXPECTED_FRAME,
)

VERSIONS: Final = (AMQP_0_9_1, AMQP_0_9, AMQP_0_8)
