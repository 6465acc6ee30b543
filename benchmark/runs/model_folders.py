"""Models that lie in a folder, as recipes name them; which of them the pages offer."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from corpus.errors import BadInput
from store.files import fetch

LARGEST_BATCH = 4096


def model_folder(recipe: Mapping[str, Any], keys: Sequence[str]) -> Path:
    """Return the folder that a recipe of these keys names. Raises BadInput."""
    if unknown := sorted(recipe.keys() - set(keys)):
        values = {"unknown": unknown[0], "known": ", ".join(keys)}
        raise BadInput(_("The recipe contains unknown settings: %(unknown)s. Accepted settings: %(known)s") % values)
    if not recipe.get("model"):
        raise BadInput(_("Name the folder of a model"))
    folder = fetch(Path(str(recipe["model"])).expanduser().resolve())
    if not folder.is_dir():
        raise BadInput(_("%(folder)s does not exist: name the folder of a model") % {"folder": folder})
    return folder


def check_batch_size(recipe: Mapping[str, Any], usual: int) -> int:
    """Return how many texts are one batch. Raises BadInput."""
    size = usual if recipe.get("batch_size") is None else recipe["batch_size"]
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= LARGEST_BATCH:
        raise BadInput(_("batch_size must be a whole number from 1 to %(most)s") % {"most": f"{LARGEST_BATCH:,}"})
    return size


def check_weights(recipe: Mapping[str, Any]) -> None:
    """Raise BadInput when the folder holds another model than the one that the run was started with."""
    folder = fetch(Path(recipe["model"]))
    if hash_weights(folder) != recipe["weights"]:
        raise BadInput(_("%(folder)s changed since the run was started: start another run") % {"folder": folder})


def hash_weights(folder: Path) -> str:
    """Return the hash of all files beside the card that decide a model's vectors."""
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        # reranker.json has figures and the card's text, which may be written anew without another vector.
        if path.is_file() and path.suffix in (".safetensors", ".bin", ".json") and path.name != "reranker.json":
            with path.open("rb") as file:
                digest.update(f"{path.relative_to(folder)}\0{file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def offered_folders(fits: Callable[[Path], bool]) -> list[str]:
    """Return the names of those folders under settings.BASE_MODELS that fit: a page names no others of the machine."""
    root = Path(settings.BASE_MODELS)
    return sorted(one.name for one in root.iterdir() if one.is_dir() and fits(one)) if root.is_dir() else []
