"""A site below a path of its host: whatever the proxy does with the path, Django sees the rest."""

from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def below(path: str, application: Application) -> Application:
    """Return the application for addresses below `path`; "" changes nothing."""
    if not path:
        return application

    def cut(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        # A proxy that cuts the path off itself, and a probe that asks this process directly, name addresses without it.
        asked = str(environ.get("PATH_INFO", ""))
        if asked == path or asked.startswith(f"{path}/"):
            environ["PATH_INFO"] = asked[len(path) :] or "/"
        return application(environ, start_response)

    return cut
