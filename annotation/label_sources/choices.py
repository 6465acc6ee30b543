"""Ways to make labels of grades: the choices of `--aggregate`. Pure."""

from charts.translation import gettext_noop
from corpus.errors import BadOption

AGGREGATES = {
    "majority": gettext_noop("the grade that most judges, people and imports gave; ties are left out"),
    "dawid-skene": gettext_noop("the most probable grade, with each assessor's errors estimated"),
    "resolved": gettext_noop("the label of the collection"),
}
MADE_OF_GRADES = ("majority", "dawid-skene")  # Aggregates that are no label of the collection.


def check_aggregate(name: str) -> None:
    """Raise BadInput unless the name is one of AGGREGATES."""
    if name not in AGGREGATES:
        raise BadOption("aggregate", f"Choose one of {', '.join(AGGREGATES)}, not {name}.")
