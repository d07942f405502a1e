"""The account of a run, for people."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.chaos.account import Account
from tests.support.chaos.checker import Verdict
from tests.support.chaos.pauses import Pause, by_kind, longest, pauses

SHOWN = 10  # findings of one kind


def report(account: Account, verdict: Verdict, began: float) -> str:
    """Times are seconds since `began`, pauses seconds."""
    return "\n".join([*_figures(account, verdict), "", *_pauses(account, began), "", *_findings(verdict)])


def _figures(account: Account, verdict: Verdict) -> Iterator[str]:
    messages = account.messages.values()
    yield f"published    {len(messages):>9}"
    yield f"confirmed    {sum(message.confirmed is not None for message in messages):>9}"
    yield f"delivered    {sum(bool(message.deliveries) for message in messages):>9}"
    yield f"redelivered  {sum(verdict.redelivered.values()):>9}  with a reason:{_reasons(verdict)}"
    ended = [one for one in account.connections.values() if one.ended is not None and not one.by_client]
    yield f"connections  {len(account.connections):>9}  of which {len(ended)} were lost"
    writes = sum(writing.count for writing in account.writings)
    yield f"writes       {writes:>9}  of batches by holders of leases; refused: {account.refused_writes}"


def _reasons(verdict: Verdict) -> str:
    return "".join(f" {reason} {count}" for reason, count in sorted(verdict.redelivered.items())) or " none"


def _pauses(account: Account, began: float) -> Iterator[str]:
    yield f"{'at':>7}  {'':<24}{_HEADINGS}"
    for disturbance, pause in pauses(account):
        at = f"{disturbance.began - began:7.1f}" if disturbance else " " * 7
        yield f"{at}  {disturbance or '(undisturbed)'!s:<24}{_row(pause)}"
    yield ""
    yield f"{'longest pause':<33}{_HEADINGS}"
    for kind, pause in by_kind(account).items():
        yield f"{kind:<33}{_row(pause)}"
    yield f"{'of all':<33}{_row(longest(account))}"


_HEADINGS = f"{'confirm':>10}{'delivery':>10}{'reconnected':>13}"


def _row(pause: Pause) -> str:
    return f"{pause.confirm:10.3f}{pause.delivery:10.3f}{pause.reconnected:13.3f}"


def _findings(verdict: Verdict) -> Iterator[str]:
    for kind, found in verdict.findings.items():
        yield f"{kind}: {len(found)}"
        yield from (f"  {one}" for one in found[:SHOWN])
    yield "every message is accounted for" if verdict.ok else "NOT ALL IS WELL"
