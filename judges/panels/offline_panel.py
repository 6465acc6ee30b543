"""The offline panel, which exists from the start: its members, and the rows that stand for it."""

from collections.abc import Iterable

from django.db import transaction

from judges.models import JudgeVersion, Panel
from judges.presets import PRESETS

OWN_PANEL = ":chosen"  # Ends the name of a panel that one collection alone may use.

OFFLINE = "offline"
# Providers of judges that make vectors or search the web, and judge nothing.
JUDGE_NOTHING = [one.name for one in PRESETS.values() if not one.judges]
OFFLINE_DEBATE = ["offline-for", "offline-against"]
OFFLINE_ENSEMBLE = ["offline-answers", "offline-bm25", "offline-tfidf", "offline-coverage", "offline-ngrams"]
OFFLINE_REWRITER = "offline-rewriter"
OFFLINE_SEARCH = "offline-web-search"
# Write and measure contribution and evidence, rewrite queries, and search; they sit on no panel.
OFFLINE_WRITERS = ["offline-writer", "offline-measurer", OFFLINE_REWRITER, OFFLINE_SEARCH]


def offline_models() -> dict[str, str]:
    """Judge name to the offline model behind it."""
    return {name: name.removeprefix("offline-") for name in OFFLINE_DEBATE + OFFLINE_ENSEMBLE}


def judges_that_vote() -> list[str]:
    """Return names of the judges that can judge a pair, in order: not those that only write, make vectors or search."""
    rows = JudgeVersion.objects.filter(is_current=True).exclude(provider__in=JUDGE_NOTHING)
    return [name for name in rows.order_by("name").values_list("name", flat=True) if name not in OFFLINE_WRITERS]


def has_real_judges() -> bool:
    """Return whether a model that can judge was configured: the offline judges are no first choice then."""
    return JudgeVersion.objects.filter(is_current=True).exclude(provider__in=[OFFLINE, *JUDGE_NOTHING]).exists()


def ensure_writers() -> None:
    """Create the offline writer, measurer, rewriter and web search where they are missing."""
    _ensure_judges(OFFLINE_WRITERS)


def missing_writers() -> list[JudgeVersion]:
    """Return unstored rows of the offline writers that no act has needed yet: pages list them."""
    return _missing_judges(OFFLINE_WRITERS)


def _ensure_judges(names: Iterable[str]) -> None:
    """Create those of these offline judges that have no current version."""
    for row in _missing_judges(names):
        row.version = JudgeVersion.objects.filter(name=row.name).count() + 1
        row.save()


def _missing_judges(names: Iterable[str]) -> list[JudgeVersion]:
    wanted = set(names)
    current = JudgeVersion.objects.filter(name__in=wanted, is_current=True).values_list("name", flat=True)
    missing = sorted(wanted - set(current))
    return [JudgeVersion(name=name, provider=OFFLINE, model=name.removeprefix("offline-")) for name in missing]


@transaction.atomic
def ensure_offline() -> Panel:
    """The panel `offline`, made anew where it is missing (a migration made it; emptied test databases lost it)."""
    # It becomes the default only while there is no other. A judge of that name that somebody configured is left alone.
    panel = Panel.objects.filter(name=OFFLINE).first()
    if panel is not None:
        return panel
    _ensure_judges(offline_models())
    return Panel.objects.create(
        name=OFFLINE,
        debate=OFFLINE_DEBATE,
        ensemble=OFFLINE_ENSEMBLE,
        majority=3,
        is_default=not Panel.objects.filter(is_default=True).exists(),
    )
