"""Options of a push to a hub, and of its stored token."""

from typing import Annotated

from django.utils.translation import gettext_lazy as _
from pydantic import AfterValidator, SecretStr

from actions.options import Options, option
from corpus.errors import BadOption

PARTS = 2  # Of the name of a repository: its owner and its name.


def check_repository(name: str) -> str:
    """Return the name of a repository without surrounding space. Raises BadOption for one without an owner."""
    parts = name.strip().split("/")
    if len(parts) != PARTS or not all(
        part.replace("-", "").replace("_", "").replace(".", "").isalnum() for part in parts
    ):
        raise BadOption("repository", _("Enter the owner and the name, for example team/books."))
    return name.strip()


class PushOptions(Options):
    """Where the files of an export or a model go, and who may read them there."""

    repository: Annotated[str, AfterValidator(check_repository)] = option(
        _("Repository"), _("As owner/name. It is created if it does not exist."), at_most=200
    )
    public: bool = option(_("Everyone may read it"), default=False)


class TokenOptions(Options):
    """A token of the hub that may write."""

    token: SecretStr = option(
        _("Token of the hub"),
        _("Stored encrypted, for the pushes of this collection, and never shown again."),
        at_least=1,
        at_most=2000,
        secret=True,
    )
