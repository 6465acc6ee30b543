"""A site below a path of its host: Django sees the rest of the path, whether or not the proxy removes the prefix."""

from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def below(path: str, application: Application) -> Application:
    """Return the application for addresses below `path`; unchanged if `path` is empty."""
    if not path:
        return application

    def cut(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        # The path is missing if the proxy removes it, or if a probe asks this process directly.
        address = str(environ.get("PATH_INFO", ""))
        if address == path or address.startswith(f"{path}/"):
            environ["PATH_INFO"] = address[len(path) :] or "/"
        return application(environ, start_response)

    return cut
