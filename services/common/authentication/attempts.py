"""Counts failed logins, by address, and by user and address: beyond a limit, passwords are refused unseen.

Each limit is a bucket of failures that may still come, refilled as time passes. There is none by user alone: a client
that does not know a password must not lock out one that does, from elsewhere. Pure: the time is an argument.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

_REMEMBERED = 20_000  # buckets; beyond, the least recently used one is forgotten
_PLACES = 4096  # of addresses whose place is remembered: clients come again
_NETWORK = 64  # bits of an IPv6 address that identify one client: it can choose the other bits at will


@dataclass(frozen=True, slots=True)
class Allowance:
    """`burst` failures at once, and one more every `seconds`."""

    burst: int
    seconds: float


OF_ADDRESS = Allowance(20, 1.0)
OF_USER_THERE = Allowance(10, 5.0)


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float  # the time at which `left` was right
    told: bool = False  # whether its emptiness was reported since it was last full


class _Buckets:
    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._buckets: OrderedDict[bytes, _Bucket] = OrderedDict()

    def is_empty(self, key: bytes, now: float) -> bool:
        bucket = self._buckets.get(key)
        return bucket is not None and self._left(bucket, now) < 1

    def is_full(self, key: bytes, now: float) -> bool:
        bucket = self._buckets.get(key)
        return bucket is None or self._left(bucket, now) >= self._allowance.burst

    def take(self, key: bytes, now: float) -> bool:
        """Counts a failure; gives whether it emptied the bucket, and that was not reported since it was last full."""
        bucket = self._buckets.pop(key, None) or _Bucket(self._allowance.burst, now)
        bucket.left, bucket.at = self._left(bucket, now), now
        bucket.told = bucket.told and bucket.left < self._allowance.burst
        bucket.left = max(bucket.left - 1, 0)
        self._buckets[key] = bucket
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        news = bucket.left < 1 and not bucket.told
        bucket.told = bucket.told or news
        return news

    def _left(self, bucket: _Bucket, now: float) -> float:
        return min(bucket.left + (now - bucket.at) / self._allowance.seconds, self._allowance.burst)


class Attempts:
    """The failures at one process. Times are seconds of a monotonic clock."""

    def __init__(self, of_address: Allowance = OF_ADDRESS, of_user_there: Allowance = OF_USER_THERE) -> None:
        self._addresses = _Buckets(of_address)
        self._users_there = _Buckets(of_user_there)

    def address_is_out(self, address: str, now: float) -> bool:
        """Whether too many logins from there have failed, of any users."""
        return self._addresses.is_empty(_key(address), now)

    def has_failed_at(self, address: str, now: float) -> bool:
        """Whether a login from there failed lately, of any user."""
        return not self._addresses.is_full(_key(address), now)

    def user_is_out(self, user: str, address: str, now: float) -> bool:
        """Whether too many logins of that user from there have failed."""
        return self._users_there.is_empty(_key(address, user), now)

    def failed(self, user: str, address: str, now: float) -> bool:
        """Counts a refused login. Gives whether further ones will be refused from now on, which is worth a log line."""
        news = self._addresses.take(_key(address), now)
        return self._users_there.take(_key(address, user), now) or news


@lru_cache(_PLACES)
def place_of(address: str) -> str:
    """What counts as one client's address: the address itself, or an IPv6 address's network; "" for a unix socket."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> (128 - _NETWORK) << (128 - _NETWORK)))


def _key(address: str, user: str | None = None) -> bytes:
    # A client may send names of any length, of users that do not exist.
    text = place_of(address) if user is None else f"{place_of(address)}\0{user}"
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
