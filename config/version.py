"""The version of Quorum, which is defined only here."""

from django.http import HttpRequest

VERSION = "0.1.0"


def version_context(request: HttpRequest) -> dict[str, str]:
    """Return the version for the footer of pages."""
    return {"quorum_version": VERSION}
