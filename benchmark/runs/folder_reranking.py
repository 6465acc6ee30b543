"""Runs by a reranker in a folder: the first documents of another run, scored by the model of a folder.

The model is a causal model, an encoder, or an encoder-decoder (monoT5). Scores are its margins,
whose sigmoid is the model's probability; a model that reasons and grades (ERank) gives the grade
times its probability, and -1 where its answer has no grade. Like every reranker it sees the
original query.
"""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from django.utils.translation import gettext as _

from benchmark.models import Run
from benchmark.runs.builders import Progress, ShouldStop, rank_each_query
from benchmark.runs.model_folders import check_folder, check_weights, reader_of
from benchmark.runs.rankings import RankedQuery
from benchmark.runs.reranking import check_first_run, first_documents, instruction_for
from benchmark.runs.vector_search import texts_of
from corpus.models import Collection, Query

KIND = Run.Kind.RERANK_FOLDER
BATCH_SIZE = 32  # Documents that are scored together, by default.


class Reranker(Protocol):
    """A model that scores documents for a query."""

    def margins(self, query: str, documents: Sequence[str], instruction: str, together: int) -> list[float]: ...


def check(collection: Collection, recipe: dict[str, Any]) -> dict[str, Any]:
    """Complete a recipe whose `run` is a name and `model` a folder. Raises BadInput."""
    (folder, recorded), prompt = check_folder(KIND, recipe), str(recipe.get("prompt") or "")
    reader_of(KIND).check_prompt(folder, prompt)
    first, size = check_first_run(collection, recipe), recipe.get("batch_size", BATCH_SIZE)
    return {**first, **recorded, "writes": reader_of(KIND).kind_of_scores(folder), "prompt": prompt, "batch_size": size}


def make(run: Run, progress: Progress, should_stop: ShouldStop) -> None:
    """Rerank the best documents of the first run; those below `top` are left out."""
    recipe = run.recipe
    check_weights(recipe)
    folder = Path(recipe["model"])
    model: Reranker = reader_of(KIND).open_scorer(folder, recipe["device"], prompt=recipe["prompt"])

    def rank(query: Query) -> RankedQuery:
        keys = first_documents(recipe, [query])[query.pk]
        texts = texts_of(keys)
        started_at = perf_counter()
        documents = [texts[key] for key in keys]
        scores = model.margins(query.text, documents, instruction_for(recipe, query), recipe["batch_size"])
        return RankedQuery(keys, scores, perf_counter() - started_at)

    rank_each_query(run, rank, progress, should_stop, _("reranking"))
