"""Contents of the demo: the bundled collection by the import, and accounts of every role."""

import json
from pathlib import Path
from typing import Any, TextIO

from django.core.management import call_command

from annotation.data.web_search.searching import WEB_SEARCHES
from annotation.models import User
from annotation.models.web_search import WebSearch
from annotation.people.accounts.invitations import create_accounts
from benchmark.answers.evaluations import ANSWERS
from benchmark.models import Run, Synthesis
from benchmark.qrels import versions
from benchmark.runs.builders import RUNS
from benchmark.synthesis.lifecycle import SYNTHESES
from benchmark.synthesis.seeds import QUERIES
from corpus import bundled
from corpus.importing.options import ImportOptions
from corpus.importing.service import ImportFiles, import_collection
from corpus.models import Collection
from jobs.models import JobState
from judges.campaigns import configurations, forecasts
from judges.panels.offline_panel import OFFLINE_REWRITER, OFFLINE_SEARCH

# How many accounts of each role.
ROLES = {"owner": 1, "admin": 1, "adjudicator": 1, "annotator": 2}

SYNTHETIC = 5  # Seeds of the synthetic queries that it shows.
# A collection of its own: what a web search adds has no labels, and would change the figures of the bundled one.
WEB, WEB_TITLE, WEB_QUERIES = "offline-web-search", "Documents from an offline web search", 8


def load_collection(folder: Path, out: TextIO) -> tuple[Collection, dict[str, int]]:
    """Cut the passages of this Python and import them, with the report on `out`; a second call changes nothing."""
    built = bundled.build(folder)
    files: dict[str, Any] = {name: [folder / f"{name}.jsonl"] for name in ("corpus", "queries", "pairs")}
    call_command("import_collection", bundled.NAME, **files, bm25=bundled.BM25, grades=1, stdout=out)
    collection = Collection.objects.get(name=bundled.NAME)
    if not collection.title:  # once: whoever edits it in the browser keeps what they wrote
        collection.rubric, collection.title = bundled.RUBRIC, bundled.TITLE
        collection.save(update_fields=["rubric", "title"])
    return collection, built


def ensure_accounts(path: Path, collection: Collection) -> list[dict[str, str]]:
    """Return [{role, username, password}], made once, random, kept in `path` for us."""
    if path.exists():
        known: list[dict[str, str]] = json.loads(path.read_text())
        if User.objects.filter(username__in=[one["username"] for one in known]).count() == len(known):
            return known
    made = []
    for role, count in ROLES.items():
        where = None if role == "owner" else collection
        made += [{"role": role, **one} for one in create_accounts(role=role, count=count, collection=where)]
    path.touch(mode=0o600)
    path.write_text(json.dumps(made, indent=1) + "\n")
    return made


def estimate_line(collection: Collection, panel: str) -> str | None:
    """Return a line on what judging would still cost; None when nothing is left or paid."""
    expected = forecasts.forecast_judging(collection, configurations.build_configuration(panel=panel))
    return None if expected is None or expected.free else expected.line()


DEPTH = 10  # Documents that the demo's runs return.
MADE: dict[str, tuple[str, dict[str, str]]] = {
    "bm25": (Run.Kind.BM25, {}),
    "hyde-offline": (Run.Kind.REWRITE, {"method": "hyde", "judge": OFFLINE_REWRITER}),
    "query2doc-offline": (Run.Kind.REWRITE, {"method": "query2doc", "judge": OFFLINE_REWRITER}),
}


def start_runs(collection: Collection) -> list[Run]:
    """Start runs without a key in the background: BM25, and BM25 over passages that the offline judge writes."""
    return [
        RUNS.start_or_join(collection, {**recipe, "name": name, "kind": kind, "depth": DEPTH})
        for name, (kind, recipe) in MADE.items()
    ]


def are_ready(runs: list[Run]) -> bool:
    """Return whether every run is ready, or has failed."""
    return not Run.objects.filter(
        pk__in=[run.pk for run in runs], state__in=[JobState.WAITING, JobState.RUNNING]
    ).exists()


def start_answers(collection: Collection) -> None:
    """Qrels before and after judging, and offline answers from all runs, in background."""
    versions.original_version(collection)
    versions.labels_version(collection)
    options = {"systems": list(MADE), "generators": [OFFLINE_REWRITER], "judge": OFFLINE_REWRITER, "k": DEPTH}
    ANSWERS.start_or_join(collection, options)


def start_synthesis(collection: Collection) -> None:
    """Start a few synthetic queries with passages, by the offline judge, in the background."""
    options = {"source": QUERIES, "judge": OFFLINE_REWRITER, "limit": SYNTHETIC}
    SYNTHESES.start_or_join(collection, options)


def start_web_search(folder: Path) -> WebSearch:
    """Start an offline web search for some bundled questions, without documents."""
    lines = (folder / "queries.jsonl").read_text().splitlines(keepends=True)
    path = folder / "web-queries.jsonl"
    path.write_text("".join(lines[:WEB_QUERIES]))
    import_collection(WEB, ImportFiles(queries=path, options=ImportOptions(grades=1)))
    Collection.objects.filter(name=WEB, title="").update(title=WEB_TITLE)
    collection = Collection.objects.get(name=WEB)
    known = WebSearch.objects.select_related("collection").filter(collection=collection).first()
    return known or WEB_SEARCHES.start_or_join(collection, {"judge": OFFLINE_SEARCH})


def is_searched(search: WebSearch) -> bool:
    """Return whether the web search is done, or has failed."""
    return WebSearch.objects.get(pk=search.pk).is_over


def start_query_writing(search: WebSearch) -> None:
    """Queries that the offline judge writes from documents of the web search, in the background."""
    options = {"kind": Synthesis.Product.ASK.value, "judge": OFFLINE_REWRITER, "limit": SYNTHETIC, "pairs": 3}
    if not Synthesis.objects.filter(collection=search.collection).exists():
        SYNTHESES.start_or_join(search.collection, options)
