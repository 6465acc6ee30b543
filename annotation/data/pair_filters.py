"""Filters and order of the list of pairs, as the URL and saved views carry them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext, gettext_lazy

from annotation.quality.policies.rules import HUMAN, LARA
from corpus.models import Item
from judges.campaigns.options import JUDGING
from judges.domain.audits import route_of
from judges.domain.routing import ORIGINS as ROUTES

STATES = [
    ("labelled", gettext_lazy("labelled by judges")),
    ("escalated", gettext_lazy("escalated to people")),
    ("failed", gettext_lazy("failed")),
    ("running", gettext_lazy("being judged")),
    ("pending", gettext_lazy("waiting for judges")),
    ("open", gettext_lazy("waits for people")),
    ("assigned", gettext_lazy("assigned to an annotator now")),
    ("conflict", gettext_lazy("waits for an adjudicator")),
    ("skipped", gettext_lazy("skipped by all annotators")),
    ("settled", gettext_lazy("completed by people")),
    ("unjudged", gettext_lazy("not judged")),
    ("new", gettext_lazy("in no campaign")),
]
ORIGINS = ["people", "adjudicator", *(policy for policy in JUDGING if policy != HUMAN), LARA, *ROUTES.values()]
WITHOUT_CONTROL = ("verdict", "round", "route", "cross", "a", "b", "cell", "sort")
IN_BAR = ("q", "state", "label", "origin")  # Filters with a control in the bar; the others are behind "More filters".
NAMES = {
    "q": gettext_lazy("Search"),
    "state": gettext_lazy("State"),
    "reason": gettext_lazy("Reason"),
    "label": gettext_lazy("Label"),
    "verdict": gettext_lazy("Verdict"),
    "round": gettext_lazy("Agreed in round"),
    "route": gettext_lazy("Audit of route"),
    "stratum": gettext_lazy("Route"),
    "cross": gettext_lazy("Debate and ensemble"),
    "origin": gettext_lazy("Label from"),
    "gold": gettext_lazy("Reference"),
    "campaign": gettext_lazy("Campaign"),
    "person": gettext_lazy("Judged by"),
    "since": gettext_lazy("Judged from"),
    "until": gettext_lazy("Judged until"),
    "comment": gettext_lazy("Comment"),
    "flag": gettext_lazy("Flag"),
    "answer": gettext_lazy("Reply"),
    "a": gettext_lazy("First assessor"),
    "b": gettext_lazy("Second assessor"),
    "cell": gettext_lazy("Grades"),
}
VALUES: dict[str, dict[str, Any]] = {
    "state": dict(STATES),
    "reason": dict(Item.Reason.choices),
    "label": {"none": gettext_lazy("none yet")},
    "gold": {"yes": gettext_lazy("has a grade"), "no": gettext_lazy("has none")},
    "comment": {"yes": gettext_lazy("has a comment")},
    "flag": {"yes": gettext_lazy("flagged by a person")},
    "answer": {"waiting": gettext_lazy("a comment or flag waits for an answer")},
}


# Title of each column of the table, and whether its values are numbers.
COLUMNS = {
    "query": (gettext_lazy("Query"), False),
    "document": (gettext_lazy("Document"), False),
    "state": (gettext_lazy("State"), False),
    "label": (gettext_lazy("Label"), False),
    "origin": (gettext_lazy("From"), False),
    "gold": (gettext_lazy("Reference"), False),
    "priority": (gettext_lazy("Priority"), True),
    "people": (gettext_lazy("People"), False),
    "judged": (gettext_lazy("Judged"), False),
}
ALWAYS = ("query", "document")  # Columns that every person sees.
UNSORTED = ("people", "judged")
USUAL = ("state", "label", "origin", "gold", "priority")  # Columns of a person who has chosen none.


@dataclass(frozen=True)
class PairFilters:
    """Filters of the list; every field is a parameter of the URL, and empty means any."""

    q: str = ""
    state: str = ""
    reason: str = ""
    label: str = ""
    verdict: str = ""
    round: str = ""
    # Pairs that were drawn for the audit of this route (judges.domain.audits), in any state.
    route: str = ""
    # A cell of debate against ensemble (annotation.quality.policies.crossing), of one campaign.
    cross: str = ""
    origin: str = ""
    gold: str = ""
    campaign: str = ""
    # Pairs that were labelled by this route (Work.stratum).
    stratum: str = ""
    # A username. This, the days and the comment are those of one current judgment by a person; with `flag`, of a flag.
    person: str = ""
    # Days of judgments, inclusive: 2026-11-30.
    since: str = ""
    until: str = ""
    comment: str = ""
    flag: str = ""
    answer: str = ""
    a: str = ""
    b: str = ""
    cell: str = ""
    # A key of annotation.data.pair_order.COLUMNS; "-" before it: descending. Empty: as imported.
    sort: str = ""

    @classmethod
    def read(cls, parameters: Any) -> "PairFilters":
        """Read filters from a query string; unknown parameters are ignored."""
        return cls(**{field.name: parameters.get(field.name, "").strip()[:200] for field in fields(cls)})

    def query(self, **changes: object) -> str:
        """Return the filters as a query string, some values changed; empty ones are left out."""
        filters = replace(self, **{name: str(value) for name, value in changes.items()})
        return urlencode({f.name: value for f in fields(filters) if (value := getattr(filters, f.name))})

    @property
    def hidden_fields(self) -> list[tuple[str, str]]:
        """Names and values of the filters in use that have no control in the form."""
        return [(name, value) for name in WITHOUT_CONTROL if (value := getattr(self, name))]

    def chips(self, routes: Mapping[str, str]) -> list[dict[str, str]]:
        """Return each active filter's name, value, and the query string that removes it. `routes`: their words."""
        return [
            {
                "name": gettext(str(name)),
                "value": str(({"stratum": routes} | VALUES).get(key, {}).get(value, value)),
                "without": self.query(**{key: ""}),
            }
            for key, name in NAMES.items()
            if (value := getattr(self, key))
        ]

    def headings(self, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return the columns of the table, each with its present direction (for aria-sort).

        `query` is the query string of its link, which sorts by the column or, where it is sorted, reverses the order;
        empty where the table cannot be sorted by it.
        """
        headings = []
        for key in (*ALWAYS, *columns):
            title, is_number = COLUMNS[key]
            direction = {key: "ascending", f"-{key}": "descending"}.get(self.sort, "")
            following = f"-{key}" if direction == "ascending" else key
            headings.append(
                {
                    "key": key,
                    "title": str(title),
                    "is_number": is_number,
                    "direction": direction,
                    "query": "" if key in UNSORTED else self.query(sort=following),
                }
            )
        return headings

    @property
    def behind_more(self) -> int:
        """Number of filters in use that have a control behind "More filters"."""
        return sum(bool(getattr(self, key)) for key in NAMES if key not in IN_BAR and key not in WITHOUT_CONTROL)

    @property
    def is_set(self) -> bool:
        """True if any filter is in use."""
        return bool(self.query(sort=""))


def describe_route(key: str, voters: int = 0) -> str:
    """Return a route in words; a text that is no route's key as it is. `voters`: as in `Route.describe`."""
    try:
        return route_of(key).describe(voters)
    except ValueError:
        return key


def choose_columns(names: Iterable[str]) -> list[str]:
    """Return the columns of the table beside query and document that are among `names`, in the table's order."""
    names = set(names)
    return [key for key in COLUMNS if key in names and key not in ALWAYS]
