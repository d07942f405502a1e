"""The contracts of the last release, which are kept here.

`python -m tests.support.contracts.released` stores those of this one: only to be run when a release is made.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet

_FOLDER = Path(__file__).parent
_PROTO = Path(__file__).parents[3] / "proto"


def these() -> FileDescriptorSet:
    """Of all contracts, as they are installed."""
    found = FileDescriptorSet()
    for path in sorted(_PROTO.glob("*.proto")):
        module = import_module(f"services.rpc.{path.stem}_pb2")
        module.DESCRIPTOR.CopyToProto(found.file.add())
    return found


def kept() -> Path:
    """The file of the last release."""
    return max(_FOLDER.glob("*.textproto"), key=lambda path: tuple(map(int, path.stem.split("."))))


def released() -> FileDescriptorSet:
    """Of all contracts of the last release."""
    return text_format.Parse(kept().read_text(), FileDescriptorSet())


def keep() -> Path:
    """Writes those that are here down, under the release's number."""
    path = _FOLDER / f"{version('hopline')}.textproto"
    path.write_text(text_format.MessageToString(these()))
    return path


if __name__ == "__main__":
    keep()
