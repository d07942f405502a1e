"""`python -m spark …`: the same commands as `hopline analyse …`."""

from __future__ import annotations

from spark.cli import app

app(prog_name="python -m spark")
