"""Base class of all models, which keeps the ETag of its answer, and bodies of requests."""

from typing import Any, TypeVar

from pydantic import BaseModel, PrivateAttr

Model = TypeVar("Model", bound=BaseModel)


class ApiModel(BaseModel):
    """An object of the API."""

    # Private: it is no field of the answer, so that `model_dump` leaves it out.
    _etag: str | None = PrivateAttr(None)

    @property
    def etag(self) -> str | None:
        """The state in which it was read, for `if_match`; None where the answer had none."""
        return self._etag

    def tag(self, etag: str | None) -> None:
        """Keep the state in which it was read."""
        self._etag = etag


def build_body(model: type[Model], given: Model | None, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what a request holds: of a model, or of its fields. Raises pydantic's ValidationError."""
    if given is not None and fields:
        raise TypeError(f"give a {model.__name__}, or its fields: not both")
    # What was not given is not sent: in some fields null means something.
    return (given or model(**fields)).model_dump(mode="json", exclude_unset=True)
