"""The files of a published model, for downloads and for pushing to a hub."""

import stat
from contextlib import suppress
from pathlib import Path

from store.files import is_shared, stored_files
from store.paths import name_below_var
from training.models import Model


def list_model_files(model: Model) -> dict[str, int]:
    """Return the names of the files below the model's folder and their sizes in bytes, on this machine or in the store.

    Empty for a folder outside VAR, named in a command, which may contain other files than the model's.
    """
    folder = Path(model.folder)
    if (top := name_below_var(folder)) is None:
        return {}
    sizes = {}
    for path in folder.rglob("*"):
        # The model may be deleted meanwhile.
        with suppress(FileNotFoundError):
            status = path.lstat()
            # A link may point to a file outside the folder, which was not published.
            if stat.S_ISREG(status.st_mode):
                sizes[path.relative_to(folder).as_posix()] = status.st_size
    if is_shared():
        sizes |= {row.name.removeprefix(f"{top}/"): row.content.size for row in stored_files(folder)}
    hidden = {name for name in sizes if any(part.startswith(".") for part in name.split("/"))}
    return {name: sizes[name] for name in sorted(sizes.keys() - hidden)}


def model_file(model: Model, name: str) -> Path | None:
    """Return the path of a file of the model, or None if there is no such file."""
    return Path(model.folder) / name if name in list_model_files(model) else None
