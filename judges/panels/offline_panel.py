"""The built-in offline panel: the names of its members, and its rows in the database."""

from collections.abc import Iterable

from django.db import transaction

from judges.models import JudgeVersion, Panel
from judges.presets import PRESETS

OWN_PANEL = ":chosen"  # Suffix of the name of a panel that belongs to a single collection.

OFFLINE = "offline"
# Providers that make vectors or search the web, and cannot judge.
JUDGE_NOTHING = [preset.name for preset in PRESETS.values() if not preset.judges]
OFFLINE_DEBATE = ["offline-for", "offline-against"]
OFFLINE_ENSEMBLE = ["offline-answers", "offline-bm25", "offline-tfidf", "offline-coverage", "offline-ngrams"]
OFFLINE_REWRITER = "offline-rewriter"
OFFLINE_SEARCH = "offline-web-search"
# They write and measure contribution and evidence, rewrite queries and search, and belong to no panel.
OFFLINE_WRITERS = ["offline-writer", "offline-measurer", OFFLINE_REWRITER, OFFLINE_SEARCH]


def offline_models() -> dict[str, str]:
    """Return the offline model of each judge on the panel, by the judge's name."""
    return {name: name.removeprefix("offline-") for name in OFFLINE_DEBATE + OFFLINE_ENSEMBLE}


def judges_that_vote() -> list[str]:
    """Return the sorted names of the judges that can judge pairs, without those that write, make vectors or search."""
    rows = JudgeVersion.objects.filter(is_current=True).exclude(provider__in=JUDGE_NOTHING)
    return [name for name in rows.order_by("name").values_list("name", flat=True) if name not in OFFLINE_WRITERS]


def ensure_writers() -> None:
    """Create the offline writer, measurer, rewriter and web search if they are missing."""
    _ensure_judges(OFFLINE_WRITERS)


def missing_writers() -> list[JudgeVersion]:
    """Return unsaved rows of the offline writers that nothing has needed yet, for pages that list them."""
    return _missing_judges(OFFLINE_WRITERS)


def _ensure_judges(names: Iterable[str]) -> None:
    """Create the offline judges of these names that have no current version."""
    for row in _missing_judges(names):
        row.version = JudgeVersion.objects.filter(name=row.name).count() + 1
        row.save()


def _missing_judges(names: Iterable[str]) -> list[JudgeVersion]:
    requested_names = set(names)
    current = JudgeVersion.objects.filter(name__in=requested_names, is_current=True).values_list("name", flat=True)
    missing = sorted(requested_names - set(current))
    return [JudgeVersion(name=name, provider=OFFLINE, model=name.removeprefix("offline-")) for name in missing]


@transaction.atomic
def ensure_offline() -> Panel:
    """Return the panel `offline`; create it if it is missing, as in a flushed test database."""
    # It becomes the default only if there is no other. A configured judge with the name of a member stays as it is.
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
