"""Processes of two releases talk to each other: what was said in the last one means the same in this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from tests.support.contracts.breaks import breaks
from tests.support.contracts.released import released, these


def test_nothing_that_was_released_is_another_or_gone() -> None:
    """No RPC, message, field or value of the last release has another number, type or name, or is gone unreserved."""
    assert breaks(released(), these()) == []


def _contract() -> FileDescriptorProto:
    file = FileDescriptorProto(name="a.proto", package="a", syntax="proto3")
    message = file.message_type.add(name="Told")
    message.field.add(
        name="count", number=1, type=FieldDescriptorProto.TYPE_UINT64, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    message.field.add(
        name="lists", number=2, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_REPEATED
    )
    message.field.add(name="either", number=4, type=FieldDescriptorProto.TYPE_STRING, oneof_index=0)
    message.oneof_decl.add(name="choice")
    message.reserved_range.add(start=3, end=4)
    message.reserved_name.append("former")
    nested = message.nested_type.add(name="Inner")
    nested.field.add(name="of", number=1, type=FieldDescriptorProto.TYPE_MESSAGE, type_name=".a.Told")
    enum = message.enum_type.add(name="Kind")
    enum.value.add(name="ONE", number=0)
    enum.value.add(name="TWO", number=1)
    enum.reserved_range.add(start=5, end=5)
    service = file.service.add(name="Ask")
    service.method.add(name="Now", input_type=".a.Told", output_type=".a.Told", server_streaming=True)
    return file


def _after(change: Callable[[Any], Any]) -> list[str]:
    new = _contract()
    change(new)
    return breaks(FileDescriptorSet(file=[_contract()]), FileDescriptorSet(file=[new]))


def _reserve(message: Any) -> None:
    message.reserved_range.add(start=1, end=2)
    message.reserved_name.append("count")
    del message.field[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda file: file.service.pop(), ["service a.Ask is gone"]),
        (lambda file: file.service[0].method.pop(), ["a.Ask.Now is gone"]),
        (
            lambda file: setattr(file.service[0].method[0], "server_streaming", False),
            ["a.Ask.Now has another server_streaming: True was released, False is here"],
        ),
        (
            lambda file: setattr(file.service[0].method[0], "input_type", ".a.Other"),
            ["a.Ask.Now has another input_type: '.a.Told' was released, '.a.Other' is here"],
        ),
        (lambda file: file.message_type[0].nested_type.pop(), ["message a.Told.Inner is gone"]),
        (lambda file: file.message_type[0].enum_type.pop(), ["enum a.Told.Kind is gone"]),
        (
            lambda file: setattr(file.message_type[0].field[0], "type", FieldDescriptorProto.TYPE_UINT32),
            ["a.Told.count = 1 has another type: 4 was released, 13 is here"],
        ),
        (
            lambda file: setattr(file.message_type[0].field[0], "name", "amount"),
            ["a.Told.count = 1 has another name: 'count' was released, 'amount' is here"],
        ),
        (
            lambda file: setattr(file.message_type[0].field[1], "label", FieldDescriptorProto.LABEL_OPTIONAL),
            ["a.Told.lists = 2 has another label: 3 was released, 1 is here"],
        ),
        (
            lambda file: setattr(file.message_type[0].field[0], "number", 7),
            [
                "a.Told.count = 1 is gone, and its number is not reserved",
                "a.Told.count = 1 is gone, and its name is not reserved",
            ],
        ),
        (
            lambda file: file.message_type[0].field[2].ClearField("oneof_index"),
            ["a.Told.either = 4 is in another oneof"],
        ),
        (
            lambda file: file.message_type[0].field.add(name="new", number=3),
            ["a.Told.new = 3 was reserved"],
        ),
        (
            lambda file: file.message_type[0].field.add(name="former", number=9),
            ["a.Told.former = 9 was reserved"],
        ),
        (
            lambda file: file.message_type[0].enum_type[0].value.pop(),
            [
                "a.Told.Kind.TWO = 1 is gone, and its number is not reserved",
                "a.Told.Kind.TWO = 1 is gone, and its name is not reserved",
            ],
        ),
        (
            lambda file: file.message_type[0].enum_type[0].value.add(name="FIVE", number=5),
            ["a.Told.Kind.FIVE = 5 was reserved"],
        ),
    ],
)
def test_what_breaks(change: Callable[[Any], Any], says: list[str]) -> None:
    """Each change after which the two releases would not understand each other is said."""
    assert _after(change) == says


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.message_type.add(name="More"),
        lambda file: file.message_type[0].field.add(name="more", number=8),
        lambda file: file.message_type[0].enum_type[0].value.add(name="THREE", number=2),
        lambda file: file.service[0].method.add(name="Later", input_type=".a.Told", output_type=".a.Told"),
        lambda file: _reserve(file.message_type[0]),
    ],
)
def test_what_does_not(change: Callable[[Any], Any]) -> None:
    """What is added may be, and what is taken away with its number and name reserved."""
    assert _after(change) == []
