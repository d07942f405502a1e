"""What spark-submit starts: `spark-submit --py-files spark.zip spark/main.py audit --ledger … --out …`."""

from __future__ import annotations

from spark.cli import app

if __name__ == "__main__":
    app(prog_name="main.py")
