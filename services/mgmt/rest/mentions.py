"""Bodies of errors in the document that describes the routes: mentioned by each of them, written down once.

FastAPI would make a validator for every mention of a model in a route's `responses`: thousands, which took a second of
every start, and validate nothing.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

_AT: Final = "#/components/schemas/{model}"


def mentioned(*models: type[BaseModel]) -> dict[str, Any]:
    """What a route's `responses` say of a status whose body is of one of these; see `written_down`."""
    refs = [{"$ref": _AT.format(model=model.__name__)} for model in models]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    return {"content": {"application/json": {"schema": schema}}}


def written_down(*models: type[BaseModel]) -> dict[str, Any]:
    """The schemas that are mentioned, by name, for the document's components."""
    return {model.__name__: model.model_json_schema(ref_template=_AT) for model in models}
