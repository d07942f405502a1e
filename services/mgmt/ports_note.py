"""Ports that are not open, or not as they should be: among the notes of health, as gateways tell of them."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from services.common.ports.port import OF_SETTINGS
from services.common.ports.state import Account, Served


def ports_note(said: Iterable[Any]) -> dict[str, str]:
    """From what living gateways say, each in its record; empty where all is well."""
    accounts = list(_readable(said))
    found: defaultdict[str, list[str]] = defaultdict(list)
    for account in accounts:
        for each in account.served:
            if text := _text(each, accounts):
                found[text].append(account.instance)
    told = (text if len(its) == len(accounts) else f"{', '.join(its)}: {text}" for text, its in found.items())
    return {"ports": "; ".join(told)} if found else {}


def _text(served: Served, accounts: Iterable[Account]) -> str:
    port = served.port
    if served.trouble:
        # Of gateways on one machine that do not share their ports one has an operator's port, which is enough.
        enough = port.name not in OF_SETTINGS and _is_open(port.name, accounts)
        return "" if enough else f"{port.name} ({port.address}) is not open: {served.trouble}"
    return f"{port.name} ({port.address}): {served.amiss}" if served.amiss else ""


def _is_open(name: str, accounts: Iterable[Account]) -> bool:
    return any(each.port.name == name and each.at for account in accounts for each in account.served)


def _readable(said: Iterable[Any]) -> Iterator[Account]:
    for each in said:
        with contextlib.suppress(ValidationError):  # of a gateway of another version
            yield Account.model_validate(each)
