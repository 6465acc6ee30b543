"""Runs by a reranker in a folder: the first documents of another run, scored anew by the model of a folder.

settings.LOCAL_RERANKERS, a module of the app above, opens the model: a causal one, an encoder, or one that reads by an
encoder and writes by a decoder (monoT5). Scores are its margins, whose sigmoid is its own probability; a model that
reasons and grades (ERank) writes the grade times its probability, and -1 where its answer has none. Like every
reranker it sees the query as it stands.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from django.conf import settings
from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs.builders import Stopped, Tell, each_query
from benchmark.runs.dense import texts_of
from benchmark.runs.model_folders import check_batch_size, check_weights, hash_weights, model_folder
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.reranking import check_first_run, first_documents, instruction_for
from corpus.errors import BadInput
from corpus.models import Collection, Query

KEYS = ("run", "model", "top", "instruction", "instructions", "prompt", "device", "batch_size")
BATCH_SIZE = 32  # Documents that are scored together, at most, unless the recipe says otherwise.


class Reranker(Protocol):
    """A model that scores documents for a query."""

    def margins(self, query: str, documents: Sequence[str], instruction: str, together: int) -> list[float]: ...


def check(collection: Collection, recipe: dict[str, Any], depth: int) -> dict[str, Any]:
    """A recipe of KEYS; `run` is a name, `model` a folder. Raises BadInput."""
    folder = model_folder(recipe, KEYS)
    prompt = str(recipe.get("prompt") or "")
    if not is_reranker(folder):
        raise BadInput(_("%(folder)s is not the folder of a reranker") % {"folder": folder})
    import_module(settings.LOCAL_RERANKERS).check_prompt(folder, prompt)
    return {
        **check_first_run(collection, recipe),
        "model": str(folder),
        "weights": hash_weights(folder),
        "writes": import_module(settings.LOCAL_RERANKERS).kind_of_scores(folder),
        "prompt": prompt,
        "device": str(recipe.get("device") or "cpu"),
        "batch_size": check_batch_size(recipe, BATCH_SIZE),
    }


def is_reranker(folder: Path) -> bool:
    """Return whether a folder holds a model that scores pairs, however it is asked."""
    return bool(import_module(settings.LOCAL_RERANKERS).is_reranker(folder))


def prompt_names() -> Sequence[str]:
    """Return the names of the prompts that a model can be asked with."""
    names: Sequence[str] = import_module(settings.LOCAL_RERANKERS).PROMPT_NAMES
    return names


def make(run: Run, progress: Tell, stopped: Stopped) -> None:
    """Rank the first run's best documents anew; those below `top` are left out."""
    recipe = run.recipe
    check_weights(recipe)
    model: Reranker = import_module(settings.LOCAL_RERANKERS).open_scorer(
        Path(recipe["model"]), recipe["device"], prompt=recipe["prompt"]
    )

    def rank(query: Query) -> RankedQuery:
        keys = first_documents(recipe, [query])[query.pk]
        texts = texts_of(keys)
        begin = perf_counter()
        documents = [texts[key] for key in keys]
        scores = model.margins(query.text, documents, instruction_for(recipe, query), recipe["batch_size"])
        return RankedQuery(keys, scores, perf_counter() - begin)

    each_query(run, rank, progress, stopped, _("reranking"))
