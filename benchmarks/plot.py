"""The picture for the README: throughput of both brokers, and latencies, as bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.scenarios import RATE_FIGURE, SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.session import Session

COLOURS = ("#2563eb", "#f97316")
BAR = 0.38


@dataclass(frozen=True, slots=True)
class Panel:
    """One group of bars: `rows` are label, scenario and figure."""

    rows: list[tuple[str, str, str]]
    unit: str
    factor: float
    scale: Literal["linear", "log"]


def draw(session: Session, brokers: Sequence[str], path: Path) -> None:
    """Writes the plot; the suffix of `path` (svg, png) decides the format."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to load, and only this option needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - after the choice of the back end

    panels = [panel for panel in _panels(session) if panel.rows]
    height = max(4, 0.36 * max([len(panel.rows) for panel in panels]))
    figure, axes = plt.subplots(1, len(panels), figsize=(6.5 * len(panels), height), squeeze=False)
    for place, panel in zip(axes[0], panels, strict=True):
        _bars(place, session, brokers, panel)
    figure.suptitle("256-byte messages, broker and load generator on the same machine")
    axes[0][0].legend(loc="lower right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def _panels(session: Session) -> list[Panel]:
    rates = [name for name in session.results if RATE_FIGURE in _figures(session, name)]
    times = [
        (f"{title} {figure}", scenario, figure)
        for scenario, title in (("latency", "under load,"), ("round-trip", "idle,"))
        for figure in _figures(session, scenario)
    ]
    return [
        Panel(
            [(SCENARIOS[name].title, name, RATE_FIGURE) for name in rates],
            "thousand messages per second, end to end (more is better)",
            1e-3,
            "linear",
        ),
        Panel(times, "milliseconds (less is better)", 1.0, "log"),
        Panel(
            [(SCENARIOS["memory"].title, "memory", figure) for figure in _figures(session, "memory")[:1]],
            "MiB (less is better)",
            1.0,
            "linear",
        ),
    ]


def _figures(session: Session, scenario: str) -> list[str]:
    measured = session.results.get(scenario, {})
    return list(next(iter(measured.values()))[0].figures) if measured else []


def _bars(
    axes: Any,  # noqa: ANN401 - types are checked without matplotlib too
    session: Session,
    brokers: Sequence[str],
    panel: Panel,
) -> None:
    rows = panel.rows
    for number, broker in enumerate(brokers):
        values = [(session.figure(scenario, broker, figure) or 0) * panel.factor for _, scenario, figure in rows]
        places = [index + number * BAR for index in range(len(rows))]
        bars = axes.barh(places, values, BAR, color=COLOURS[number % len(COLOURS)], label=broker)
        axes.bar_label(bars, fmt="{:.3g}", padding=2, fontsize=8)
    axes.set_yticks([index + BAR * (len(brokers) - 1) / 2 for index in range(len(rows))], [row[0] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(panel.unit)
    axes.set_xscale(panel.scale)
    axes.spines[["top", "right"]].set_visible(False)
