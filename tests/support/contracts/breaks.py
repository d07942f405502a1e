"""What of an older contract a newer one has changed or taken away: processes of both releases talk to each other.

A field may be removed if its number and its name are reserved, so that they never mean something else: then a process
that still sends it is not understood, which the release has to have thought of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

# Of a field, all that changes what its bytes mean, or what it is called.
_OF_A_FIELD = ("name", "type", "type_name", "label", "proto3_optional")
_OF_A_METHOD = ("input_type", "output_type", "client_streaming", "server_streaming")


def breaks(old: FileDescriptorSet, new: FileDescriptorSet) -> list[str]:
    """Each in a line; none: they go together."""
    found: list[str] = []
    for kind, check in (("message", _message), ("enum", _enum), ("service", _service)):
        later = dict(_all(new, kind))
        for name, before in _all(old, kind):
            after = later.get(name)
            found += [f"{kind} {name} is gone"] if after is None else check(name, before, after)
    return found


def _all(files: FileDescriptorSet, kind: str) -> Iterator[tuple[str, Any]]:
    for file in files.file:
        yield from _within(file, kind, file.package, "message_type")


def _within(holder: Any, kind: str, prefix: str, messages: str) -> Iterator[tuple[str, Any]]:
    fields = {"message": messages, "enum": "enum_type", "service": "service"}
    for each in getattr(holder, fields[kind], ()):
        yield f"{prefix}.{each.name}", each
    for nested in getattr(holder, messages):
        yield from _within(nested, kind, f"{prefix}.{nested.name}", "nested_type")


def _service(name: str, old: ServiceDescriptorProto, new: ServiceDescriptorProto) -> Iterator[str]:
    later = {method.name: method for method in new.method}
    for method in old.method:
        if method.name not in later:
            yield f"{name}.{method.name} is gone"
        else:
            yield from _other(f"{name}.{method.name}", method, later[method.name], _OF_A_METHOD)


def _message(name: str, old: DescriptorProto, new: DescriptorProto) -> Iterator[str]:
    later = {field.number: field for field in new.field}
    for field in old.field:
        shown = f"{name}.{field.name} = {field.number}"
        if field.number not in later:
            yield from _taken_away(shown, field, new, _up_to_end)
            continue
        yield from _other(shown, field, later[field.number], _OF_A_FIELD)
        if _one_of(old, field) != _one_of(new, later[field.number]):
            yield f"{shown} is in another oneof"
    yield from _used_again(name, old, new.field, _up_to_end)


def _enum(name: str, old: EnumDescriptorProto, new: EnumDescriptorProto) -> Iterator[str]:
    later = {value.number: value for value in new.value}
    for value in old.value:
        shown = f"{name}.{value.name} = {value.number}"
        if value.number not in later:
            yield from _taken_away(shown, value, new, _including_end)
        else:
            yield from _other(shown, value, later[value.number], ("name",))
    yield from _used_again(name, old, new.value, _including_end)


def _other(shown: str, old: Any, new: Any, what: Iterable[str]) -> Iterator[str]:
    for each in what:
        before, after = getattr(old, each), getattr(new, each)
        if before != after:
            yield f"{shown} has another {each}: {before!r} was released, {after!r} is here"


def _one_of(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    return message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""


def _taken_away(shown: str, old: Any, new: Any, numbers: Callable[[Any], range]) -> Iterator[str]:
    if not any(old.number in numbers(each) for each in new.reserved_range):
        yield f"{shown} is gone, and its number is not reserved"
    if old.name not in new.reserved_name:
        yield f"{shown} is gone, and its name is not reserved"


def _used_again(name: str, old: Any, now: Iterable[Any], numbers: Callable[[Any], range]) -> Iterator[str]:
    for each in now:
        if each.name in old.reserved_name or any(each.number in numbers(gone) for gone in old.reserved_range):
            yield f"{name}.{each.name} = {each.number} was reserved"


def _up_to_end(reserved: DescriptorProto.ReservedRange) -> range:
    return range(reserved.start, reserved.end)


def _including_end(reserved: EnumDescriptorProto.EnumReservedRange) -> range:
    return range(reserved.start, reserved.end + 1)
