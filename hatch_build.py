"""Generates services/rpc from proto/ whenever the distribution is built or installed in place."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
PROTO = ROOT / "proto"
RPC = ROOT / "services" / "rpc"


def generate() -> None:
    """Writes one `*_pb2` trio per contract; raises SystemExit when protoc refuses one."""
    from grpc_tools import protoc

    # protoc looks for the mypy plug-ins on PATH; an environment that is not activated has them beside its Python.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    RPC.mkdir(exist_ok=True)
    # import-linter and mypy want a real package, and the folder is git-ignored.
    (RPC / "__init__.py").touch()
    flags = [f"--{kind}_out={ROOT}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    sources = sorted(f"services/rpc/{path.name}" for path in PROTO.glob("*.proto"))
    if code := protoc.main(["protoc", f"-Iservices/rpc={PROTO}", *flags, *sources]):
        sys.exit(code)


class GenerateRpc(BuildHookInterface[Any]):
    """Runs before every build, editable installs included."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        generate()


if __name__ == "__main__":
    generate()
