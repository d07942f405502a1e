"""Users of a file, a line each: NAME:PASSWORD, or a password's kept form. It is read again when it changes.

A user whose line is removed or changed loses its connections a moment later. While a line is wrong, or the file cannot
be read, its former content counts: a slip shuts no user out. By a file that is missing, or was never right since the
process started, no user signs in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, cast

import structlog
from pydantic import Field

from services.common.authentication.claims import PASSWORDS, Claim, Credentials, Digest
from services.common.authentication.fair_slots import FairSlots
from services.common.authentication.kinds import file_lines
from services.common.authentication.principal import Principal
from services.common.authentication.provider import House, Options, Provider
from services.common.authentication.refusal import Refused
from services.common.errors import Unavailable
from services.common.few_lines import FewLines
from services.common.runtime import Tasks

log = structlog.get_logger()

_LOOK = 1.0  # seconds between looks at the file
_HASHES, _DOUBTFUL_HASHES = 2, 1  # at a time
_GONE = "put the file there: without it this provider accepts no user"
_WRONG = "correct it: until then the users count that were in it when it was last read, or none if it never was"


class FileOptions(Options):
    path: Annotated[str, Field(min_length=1, description="of the file of users")]
    format: Annotated[
        Literal["plain", "base64-md5", "hashes"],
        Field(
            description="of a line's second half: the password; its MD5 in base64; or a hash, as htpasswd -B makes it"
        ),
    ] = "hashes"
    groups_path: Annotated[str, Field(description="of a file of groups, NAME.users=USER,USER a line; empty: none")] = ""


class File(Provider):
    options_type = FileOptions

    def __init__(self, name: str, options: Options, house: House) -> None:
        super().__init__(name, options, house)
        self._options = cast("FileOptions", options)
        self.mechanisms = PASSWORDS | file_lines.DIGESTS[self._options.format]
        self.slots = FairSlots(_HASHES, _DOUBTFUL_HASHES)
        self._hashing = asyncio.Semaphore(_HASHES)
        self._stamp: Hashable = None  # of the content that counts; None: there is none
        self._wrong: Hashable = None  # of later content that was read, and is wrong
        self._users: Mapping[str, str] = {}
        self._groups: Mapping[str, frozenset[str]] = {}
        self._few = FewLines(most=1)
        self._tasks = Tasks()
        self._look()
        self._tasks.start(self._look_again(), name=f"look at the users of {name}")

    async def verify(self, claim: Claim) -> Principal:
        self._look()
        if self._stamp is None:
            raise Unavailable(f"authentication provider '{self.name}' has no file that can be read")
        kept = self._users.get(claim.user)
        if isinstance(claim, Digest):
            fits = file_lines.fits_digest(self._options.format, kept, claim)
        elif isinstance(claim, Credentials):
            other = next(iter(self._users.values()), "")
            async with self._hashing:
                fits = await asyncio.to_thread(file_lines.fits, self._options.format, kept, claim.password, other)
        else:
            raise Refused("a name and a password are needed")
        if not fits or self._users.get(claim.user) != kept:
            raise Refused("no such user, or another password")
        groups = self._groups.get(claim.user, frozenset())
        return Principal(claim.user, self.name, groups, self.tags_of(groups))

    def basis_of(self, claim: Claim) -> Hashable:
        return claim.user, self._users.get(claim.user), self._groups.get(claim.user)

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            self._look()

    def _look(self) -> None:
        """Reads the files if they have changed; they are small and local."""
        options = self._options
        paths = [Path(path) for path in (options.path, options.groups_path) if path]
        stamp = _stamps_of(paths)  # taken before they are read: a later write gives another one
        try:
            if stamp is not None and stamp in (self._stamp, self._wrong):
                self._is_right_again(stamp)
                return
            users = file_lines.read_users(paths[0])
            groups = file_lines.read_groups(paths[1]) if options.groups_path else {}
        except FileNotFoundError as error:
            self._stamp = self._wrong = None
            self._tell("a file of users does not exist", str(error), _GONE)
            self._change({}, {})
        except (OSError, ValueError) as error:
            self._wrong = stamp
            self._tell("a file of users cannot be used as it is now", str(error), _WRONG)
        else:
            self._stamp = stamp
            self._is_right_again(stamp)
            self._change(users, groups)

    def _is_right_again(self, stamp: Hashable) -> None:
        if self.trouble and stamp == self._stamp:
            self._wrong, self.trouble = None, ""
            log.info("a file of users is correct again", provider=self.name)

    def _tell(self, event: str, reason: str, do: str) -> None:
        former, self.trouble = self.trouble, f"{event}: {reason}; {do}"
        if self.trouble != former:  # the file is looked at again and again
            self._few.say(log.error, event, provider=self.name, reason=reason, do=do)

    def _change(self, users: Mapping[str, str], groups: Mapping[str, frozenset[str]]) -> None:
        former, of_groups = self._users, self._groups
        self._users, self._groups = users, groups
        end: Callable[[str, str, str], None] = self.house.end_user
        for name in former:
            if name not in users:
                end(self.name, name, "is deleted")
            elif (former[name], of_groups.get(name)) != (users[name], groups.get(name)):
                end(self.name, name, "was changed")

    async def close(self) -> None:
        await self._tasks.stop()


def _stamps_of(paths: Iterable[Path]) -> Hashable:
    """None where that cannot be found out: then the files are read again."""
    with suppress(OSError):
        return tuple(_stamp_of(path) for path in paths)
    return None


def _stamp_of(path: Path) -> Hashable:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
