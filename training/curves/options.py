"""What a learning curve can be told."""

from typing import Annotated, Any

from django.utils.translation import gettext_lazy as _
from pydantic import BeforeValidator

from actions.options import option, split_names
from corpus.errors import BadOption
from training.jobs.options import TrainingOptions
from training.models import LearningCurve

MOST_POINTS = 20


def parse_points(given: Any) -> Any:
    """Return the numbers between commas, as written. Raises BadOption for what is no whole number, or too many."""
    parts = split_names(given)
    if wrong := next(
        (part for part in map(str, parts) if not (part.isascii() and part.isdecimal() and len(part) < 10)), None
    ):
        words = _("%(part)s is not a whole number: write points such as 500,1000,2000")
        raise BadOption("points", words % {"part": repr(wrong)})
    if len(parts) > MOST_POINTS:
        words = _("%(count)s points are too many: a curve has %(most)s at most")
        raise BadOption("points", words % {"count": len(parts), "most": MOST_POINTS})
    return parts


class CurveOptions(TrainingOptions):
    """What a learning curve can be told: a training, with the points of the curve and the order of its queries."""

    points: Annotated[tuple[int, ...], BeforeValidator(parse_points)] = option(
        _("Points (numbers of labels)"),
        _("Numbers with commas between them, such as 500,1000,2000. Each is a training of its own."),
    )
    order: LearningCurve.Order = option(
        _("Order of the queries"),
        _("Each point takes the first queries of this order, always whole queries."),
        default=LearningCurve.Order.TIME,
    )
