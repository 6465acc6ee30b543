"""Contents of the demo: the bundled collection, accounts of every role, and jobs by the offline judges."""

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
from corpus.search import static_embeddings
from jobs.models import JobState
from judges.campaigns import configurations, forecasts
from judges.panels.offline_panel import OFFLINE_REWRITER, OFFLINE_SEARCH

# Number of accounts by role.
ROLES = {"owner": 1, "admin": 1, "adjudicator": 1, "annotator": 2}

SYNTHETIC = 5  # Seeds of synthetic queries.
# A separate collection, because documents from a web search have no labels and would change the bundled one's figures.
WEB, WEB_TITLE, WEB_QUERIES = "offline-web-search", "Documents from an offline web search", 8


def load_collection(folder: Path, out: TextIO) -> tuple[Collection, dict[str, int]]:
    """Split this Python's documentation into passages and import them, with the report on `out`.

    A second call changes nothing.
    """
    built = bundled.build(folder)
    files: dict[str, Any] = {name: [folder / f"{name}.jsonl"] for name in ("corpus", "queries", "pairs")}
    call_command("import_collection", bundled.NAME, **files, **bundled.pool_depths(), grades=1, stdout=out)
    collection = Collection.objects.get(name=bundled.NAME)
    if not collection.title:  # Only once, so that later edits in the browser are kept.
        collection.rubric, collection.title, collection.lab = bundled.RUBRIC, bundled.TITLE, True
        collection.save(update_fields=["rubric", "title", "lab"])
    return collection, built


def ensure_accounts(path: Path, collection: Collection) -> list[dict[str, str]]:
    """Return [{role, username, password}] of random accounts, which are created once and stored in `path`."""
    if path.exists():
        accounts: list[dict[str, str]] = json.loads(path.read_text())
        if User.objects.filter(username__in=[account["username"] for account in accounts]).count() == len(accounts):
            return accounts
    new_accounts = []
    for role, count in ROLES.items():
        account_collection = None if role == "owner" else collection
        new_accounts += [
            {"role": role, **account}
            for account in create_accounts(role=role, count=count, collection=account_collection)
        ]
    path.touch(mode=0o600)
    path.write_text(json.dumps(new_accounts, indent=1) + "\n")
    return new_accounts


def estimate_line(collection: Collection, panel: str) -> str | None:
    """Return a line with the cost of the remaining judging; None if nothing remains or all is free."""
    expected = forecasts.forecast_judging(collection, configurations.build_configuration(panel=panel))
    return None if expected is None or expected.free else expected.line()


DEPTH = 10  # Documents per query in the demo's runs.
RUN_RECIPES: dict[str, tuple[str, dict[str, str]]] = {
    "bm25": (Run.Kind.BM25, {}),
    **({"static": (Run.Kind.STATIC, {})} if static_embeddings.is_available() else {}),
    "hyde-offline": (Run.Kind.REWRITE, {"method": "hyde", "judge": OFFLINE_REWRITER}),
    "query2doc-offline": (Run.Kind.REWRITE, {"method": "query2doc", "judge": OFFLINE_REWRITER}),
}


def start_runs(collection: Collection) -> list[Run]:
    """Start runs that need no key in the background: first stages, and BM25 with passages by the offline judge."""
    return [
        RUNS.start_or_join(collection, {**recipe, "name": name, "kind": kind, "depth": DEPTH})
        for name, (kind, recipe) in RUN_RECIPES.items()
    ]


def are_ready(runs: list[Run]) -> bool:
    """Return whether every run is ready or has failed."""
    return not Run.objects.filter(
        pk__in=[run.pk for run in runs], state__in=[JobState.WAITING, JobState.RUNNING]
    ).exists()


def start_fusion(collection: Collection) -> None:
    """Start the fusion of both first stages in the background, where there are two and they are ready."""
    runs = ("bm25", "static")
    if Run.objects.filter(collection=collection, name__in=runs, state=JobState.READY).count() == len(runs):
        recipe = {"kind": Run.Kind.HYBRID, "method": "rrf", "runs": runs, "depth": DEPTH}
        RUNS.start_or_join(collection, {**recipe, "name": "rrf"})


def start_answers(collection: Collection) -> None:
    """Create qrels before and after judging, and start offline answers from all runs in the background."""
    versions.original_version(collection)
    versions.labels_version(collection)
    options = {"systems": list(RUN_RECIPES), "generators": [OFFLINE_REWRITER], "judge": OFFLINE_REWRITER, "k": DEPTH}
    ANSWERS.start_or_join(collection, options)


def start_synthesis(collection: Collection) -> None:
    """Start a few synthetic queries with passages by the offline judge, in the background."""
    options = {"source": QUERIES, "judge": OFFLINE_REWRITER, "limit": SYNTHETIC}
    SYNTHESES.start_or_join(collection, options)


def start_web_search(folder: Path) -> WebSearch:
    """Start an offline web search for some of the bundled questions, without their documents."""
    lines = (folder / "queries.jsonl").read_text().splitlines(keepends=True)
    path = folder / "web-queries.jsonl"
    path.write_text("".join(lines[:WEB_QUERIES]))
    import_collection(WEB, ImportFiles(queries=path, options=ImportOptions(grades=1)))
    Collection.objects.filter(name=WEB, title="").update(title=WEB_TITLE, lab=True)
    collection = Collection.objects.get(name=WEB)
    web_search = WebSearch.objects.select_related("collection").filter(collection=collection).first()
    return web_search or WEB_SEARCHES.start_or_join(collection, {"judge": OFFLINE_SEARCH})


def start_query_writing(search: WebSearch) -> None:
    """Start queries that the offline judge writes from documents of the web search, in the background."""
    options = {"kind": Synthesis.Product.ASK.value, "judge": OFFLINE_REWRITER, "limit": SYNTHETIC, "pairs": 3}
    if not Synthesis.objects.filter(collection=search.collection).exists():
        SYNTHESES.start_or_join(search.collection, options)
