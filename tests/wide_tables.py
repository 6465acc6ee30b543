"""Pages with wide tables, with names as long as those that providers give: panel, ledger, leaderboard, label errors."""

from annotation.quality.label_errors import suspects
from benchmark.models import Run
from corpus.models import Collection, Label, Pair
from judges.models import Campaign, JudgeVersion
from tests import benchmark_scene, money_scene, panel_scene
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection
from tests.judged_books import make_books

MODELS = (
    "gpt-4o-mini-2024-07-18", "claude-3-5-haiku-20241022", "gemini-2.0-flash-001", "llama-3.1-8b-instruct",
    "qwen2.5-14b-instruct", "mistral-small-24b", "deepseek-v3-0324", "command-r7b-12-2024",
)  # fmt: skip
RUNS = ("bm25-stemmed-english", "dense-large-2024-07", "query2doc-bm25", "dense-small", "reranked-by-large", "hybrid")


def make_panel() -> Collection:
    """Eight candidates with votes on 120 pairs, and reference grades."""
    books = make_collection("panel", title="Panel", grades=3, relevant_from=2)
    panel_scene.add_pairs(books, "q1", [f"d{n}" for n in range(panel_scene.PAIRS)])
    votes, truth = panel_scene.answers(1)
    panel_scene.vote(books, votes)
    panel_scene.refer(books, truth)
    rename_judges(books)
    return books


def rename_judges(books: Collection) -> None:
    """Give the judges of a collection's campaigns the names of models."""
    voters = {pk for campaign in Campaign.objects.filter(collection=books) for pk in campaign.voters}
    for name, judge in zip(MODELS, JudgeVersion.objects.filter(pk__in=voters).order_by("pk"), strict=False):
        judge.name = f"{name}-{books.pk}"
        judge.save()


def make_ledger() -> Collection:
    """A campaign with calls of priced and unpriced judges, and people's work."""
    books = money_scene.judged_books()
    money_scene.audits(Campaign.objects.get(collection=books), 1, 1)
    rename_judges(books)
    Collection.objects.filter(pk=books.pk).update(name="ledger")
    books.refresh_from_db()
    return books


def make_leaderboard() -> Collection:
    """Six runs; the leaderboard is not computed yet."""
    books = benchmark_scene.collection_of_books("board")
    for run, name in zip(benchmark_scene.runs_of(books), RUNS, strict=True):
        Run.objects.filter(pk=run.pk).update(name=name)
    return books


def make_label_errors() -> Collection:
    """Three labels that a person gave against all votes, on long texts."""
    books = make_books("errors")
    for place in (4, 7, 10):
        pair = Pair.objects.filter(collection=books).order_by("pk")[place]
        make_judgment(pair, make_assessor(books, "bob"), 2)
        Label.objects.filter(pair=pair).update(grade=2, origin="people")
    suspects.LABEL_ERRORS.compute_now(books)
    return books
