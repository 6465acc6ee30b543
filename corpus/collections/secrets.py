"""Secrets of an instance, as API keys and passwords, kept in no database, no log and on no page.

For NAME, in this order: the environment variable NAME; the file that NAME_FILE names; the file NAME
in the folder that QUORUM_SECRETS names (Docker and Kubernetes mount secrets as such files).
"""

import os
from pathlib import Path

from corpus.errors import BadInput


def read_secret(name: str) -> str:
    """Return the secret without white space around it; "" where there is none. Raises BadInput for a bad file."""
    if value := os.environ.get(name, "").strip():
        return value
    if place := os.environ.get(f"{name}_FILE", ""):
        return _read_file(Path(place), f"{name}_FILE")
    folder = os.environ.get("QUORUM_SECRETS", "")
    if folder and (path := Path(folder) / name).is_file():
        return _read_file(path, "QUORUM_SECRETS")
    return ""


def _read_file(path: Path, variable: str) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise BadInput(
            f"{variable}: the file of the secret cannot be read ({reason}): check its path and rights"
        ) from None
