"""Optional libraries, imported when they are needed."""

from importlib import import_module
from typing import Any


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """Return a module of an extra. Raises ImportError, which says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {module}: pip install 'quorum-client[{extra}]'") from error
