"""The files of a published model, as they can be downloaded and pushed."""

from pathlib import Path

from store.files import is_shared, stored_files
from store.paths import name_below_var
from training.models import Model


def list_model_files(model: Model) -> dict[str, int]:
    """Return the names below the model's folder and their sizes in bytes, wherever the files are.

    None for a folder outside of VAR, which somebody named to a command: what else lies there is nobody's business.
    """
    folder = Path(model.folder)
    if (top := name_below_var(folder)) is None:
        return {}
    found = {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        # A link may point out of the folder, and what lies there was not published.
        if path.is_file() and not path.is_symlink()
    }
    if is_shared():
        found |= {row.name.removeprefix(f"{top}/"): row.content.size for row in stored_files(folder)}
    hidden = {name for name in found if any(part.startswith(".") for part in name.split("/"))}
    return {name: found[name] for name in sorted(found.keys() - hidden)}


def model_file(model: Model, name: str) -> Path | None:
    """Return the path of a file of the model; None where there is no such file."""
    return Path(model.folder) / name if name in list_model_files(model) else None
