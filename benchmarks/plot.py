"""The picture for the README: throughput of both brokers, and latencies, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.scenarios import RATE_FIGURE, SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.session import Session

COLOURS = ("#2563eb", "#f97316")
BAR = 0.38


def draw(session: Session, brokers: Sequence[str], path: Path) -> None:
    """Writes the plot; the suffix of `path` (svg, png) decides the format."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to load, and only this option needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of the back end

    rates = [name for name in session.results if SCENARIOS[name].better == "more"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(3, 2))
    _bars(left, session, brokers, [(SCENARIOS[name].title, name, RATE_FIGURE) for name in rates], scale=1e-3)
    left.set_xlabel("thousand messages per second, end to end (more is better)")
    latencies = [
        (f"{title} {name}", scenario, name)
        for scenario, title in (("latency", "under load"), ("round-trip", "idle"))
        for name in _figures(session, scenario)
    ]
    _bars(right, session, brokers, latencies, scale=1.0)
    right.set_xlabel("milliseconds (less is better)")
    right.set_xscale("log")
    figure.suptitle("256-byte messages, broker and load generator on the same machine")
    left.legend(loc="lower right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def _figures(session: Session, scenario: str) -> list[str]:
    measured = session.results.get(scenario, {})
    return list(next(iter(measured.values()))[0].figures) if measured else []


def _bars(
    axes: Any,  # noqa: ANN401 - matplotlib is not there for everybody who checks types
    session: Session,
    brokers: Sequence[str],
    rows: list[tuple[str, str, str]],
    scale: float,
) -> None:
    for number, broker in enumerate(brokers):
        values = [(session.figure(scenario, broker, figure) or 0) * scale for _, scenario, figure in rows]
        places = [index + number * BAR for index in range(len(rows))]
        bars = axes.barh(places, values, BAR, color=COLOURS[number % len(COLOURS)], label=broker)
        axes.bar_label(bars, fmt="{:.3g}", padding=2, fontsize=8)
    axes.set_yticks([index + BAR * (len(brokers) - 1) / 2 for index in range(len(rows))], [row[0] for row in rows])
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
