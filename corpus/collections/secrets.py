"""Secrets of an instance, such as API keys and passwords, which are in no database, log or page.

The secret NAME is read from the environment variable NAME, else from the file that NAME_FILE names,
else from the file NAME in the folder that QUORUM_SECRETS names (as Docker and Kubernetes mount secrets).
"""

import os
from pathlib import Path

from corpus.errors import BadInput


def read_secret(name: str) -> str:
    """Return the secret without surrounding white space; "" if there is none. Raises BadInput for a bad file."""
    if value := os.environ.get(name, "").strip():
        return value
    if secret_file := os.environ.get(f"{name}_FILE", ""):
        return _read_file(Path(secret_file), f"{name}_FILE")
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
