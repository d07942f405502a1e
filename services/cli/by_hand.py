"""`hopline publish` and `hopline get`: messages by hand, as those of a client that signs in at a gateway."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from services.cli.asking import fail, read_settings
from services.cli.completing import keys, names, users
from services.cli.listing import AsLines, Host
from services.cli.password import read_password
from services.cli.talking import on_objects
from services.cli.told import table

if TYPE_CHECKING:
    from services.common.clients.objects import ObjectsClient
    from services.rpc import objects_pb2 as pb

# ruff: noqa: PLC0415 - as in listing.py

_Result = TypeVar("_Result")

_MOST = 10_000
_User = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Who signs in; the password is asked for.",
        show_default="HOPLINE_USER, or guest",
        autocompletion=users,
    ),
]
_PasswordFile = Annotated[str | None, typer.Option(metavar="FILE", help="Holds the password; - is standard input.")]
_AS_WHOM = "--user and --password-file say who signs in, `hopline permissions set` what they may"


def add_to(app: typer.Typer) -> None:
    """The commands become `app`'s."""
    app.command()(publish)
    app.command()(get)


def publish(
    body: Annotated[list[str] | None, typer.Argument(metavar="BODY", help="Text.")] = None,
    exchange: Annotated[str, typer.Option(help="Empty: the default exchange.", autocompletion=names("EXCHANGE"))] = "",
    key: Annotated[
        str, typer.Option(help="Routing key; for the default exchange the queue's name.", autocompletion=keys)
    ] = "",
    file: Annotated[str | None, typer.Option(metavar="FILE", help="Has the body; - is standard input.")] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME=TEXT", help="Or NAME:=JSON for what is no text. Repeatable.")
    ] = None,
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property", metavar="NAME=TEXT", help="content_type, message_id, …; priority:=5 and such. Repeatable."
        ),
    ] = None,
    persistent: Annotated[bool, typer.Option("--persistent", help="On disk before it is confirmed.")] = False,
    virtual_host: Host = "/",
    user: _User = "",
    password_file: _PasswordFile = None,
) -> None:
    """Publishes a message, and says whether any queue has it."""
    told = {
        "routing_key": key,
        **_payload(_one(body), file, password_file),
        "properties": _properties(property_, header, persistent),
    }
    login = _login(user, password_file)
    if not _signed_in(lambda client: client.publish(login, virtual_host, exchange, told)):
        fail("published, and no queue gets it: `hopline route` shows why, with the same --exchange and --key")
    typer.echo("published")


def get(
    queue: Annotated[str, typer.Argument(metavar="QUEUE", autocompletion=names("QUEUE"))],
    count: Annotated[int, typer.Option(min=1, max=_MOST, help="At most so many, from the head of the queue.")] = 1,
    take: Annotated[bool, typer.Option("--take", help="Acknowledge them; else they are requeued.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject them: they are dead-lettered, or dropped.")] = False,
    truncate: Annotated[int | None, typer.Option(metavar="BYTES", min=0, help="Show no more of each body.")] = None,
    virtual_host: Host = "/",
    user: _User = "",
    password_file: _PasswordFile = None,
    as_json: AsLines = False,
) -> None:
    """Gets messages from a queue to look at them. Those that are requeued are marked as redelivered from then on."""
    from services.cli.console import say
    from services.cli.messages_shown import json_lines, message_lines
    from services.common.printable import printable

    if take and reject:
        fail("--take, or --reject: not both", status=2)
    ackmode = "ack_requeue_false" if take else "reject_requeue_false" if reject else "ack_requeue_true"
    told = {"count": count, "ackmode": ackmode, "encoding": "auto", "truncate": truncate}
    login = _login(user, password_file)
    lines = json_lines if as_json else message_lines

    async def ask(client: ObjectsClient) -> int:
        from services.cli.bar import bar

        shown = 0
        async with bar("getting") as going:
            async for page in client.get(login, virtual_host, queue, told):
                going.at(page.total, count)
                if page.rows:
                    going.hide()
                    say(lines(page.rows, shown))
                    shown += len(page.rows)
        return shown

    if not _signed_in(ask):
        typer.echo(printable(f"nothing waits in queue '{queue}'"), err=True)


def _one(bodies: list[str] | None) -> str | None:
    """The shell makes several of a body with spaces; others' tools take a key first."""
    if bodies and len(bodies) > 1:
        fail("one body, in quotes where it has spaces; what it is published with is --key KEY", status=2)
    return bodies[0] if bodies else None


def _payload(body: str | None, file: str | None, password_file: str | None) -> dict[str, str]:
    """As mgmt takes it: text where it is UTF-8."""
    import base64

    if (body is None) is (file is None):
        fail("a body, or --file FILE that has it; - is standard input", status=2)
    if file == password_file == "-":
        fail("--file - and --password-file -: standard input has one of them", status=2)
    data = body.encode() if body is not None else _read(str(file))
    try:
        return {"payload": data.decode(), "payload_encoding": "string"}
    except UnicodeDecodeError:
        return {"payload": base64.b64encode(data).decode(), "payload_encoding": "base64"}


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")


def _properties(given: list[str] | None, headers: list[str] | None, persistent: bool) -> dict[str, Any]:
    found = table(given, "--property")
    if headers:
        found["headers"] = table(headers, "--header")
    return {"delivery_mode": 2, **found} if persistent else found


def _login(user: str, password_file: str | None) -> pb.Login:
    """The user that is given; else the first user, with the password of the settings, unless another one is given."""
    from services.common.first_user import first_user
    from services.common.runtime import CannotStart
    from services.rpc import objects_pb2 as pb

    if user:
        return pb.Login(user=user, password=read_password(None, password_file, twice=False))
    try:
        first = first_user(read_settings())
    except CannotStart as error:
        fail(str(error), status=2)
    password = first.password if password_file is None else read_password(None, password_file)
    return pb.Login(user=first.name, password=password)


def _signed_in(call: Callable[[ObjectsClient], Coroutine[Any, Any, _Result]]) -> _Result:
    """As `on_objects`; where access is refused, the error says what to do."""

    async def ask(client: ObjectsClient) -> _Result:
        from services.common.errors import AccessRefused

        try:
            return await call(client)
        except AccessRefused as error:
            raise AccessRefused(f"{error.text}; {_AS_WHOM}") from None

    return on_objects(ask)
