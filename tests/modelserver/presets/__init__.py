"""Look-alikes of providers by preset: each refuses what its provider refuses and answers as it answers.

The server chooses one by the first part of a path, `/<preset>/...`; a path without one meets the
server's own formats. What the documentation of a provider says stands in the facts of its preset
(judges/presets).
"""

from tests.modelserver.presets.base import LookAlike
from tests.modelserver.presets.hosted import HOSTED
from tests.modelserver.presets.local import LOCAL
from tests.modelserver.presets.native import NATIVE

LOOK_ALIKES: dict[str, LookAlike] = {one.name: one for one in (*NATIVE, *HOSTED, *LOCAL)}


def find(path: str) -> tuple[LookAlike | None, str]:
    """The look-alike that a path names, and what is left of the path."""
    first, slash, rest = path.removeprefix("/").partition("/")
    alike = LOOK_ALIKES.get(first)
    return (alike, slash + rest) if alike else (None, path)
