"""Options of a learning curve."""

from typing import Annotated, Any

from django.utils.translation import gettext_lazy as _
from pydantic import BeforeValidator

from actions.options import option, split_names
from corpus.errors import BadOption
from training.jobs.options import TrainingOptions
from training.models import LearningCurve

MOST_POINTS = 20


def parse_points(value: Any) -> Any:
    """Return the numbers between commas, as strings. Raises BadOption for too many, or for one that is not whole."""
    parts = split_names(value)
    for part in map(str, parts):
        if not (part.isascii() and part.isdecimal() and len(part) < 10):
            message = _("%(part)s is not a whole number: write points such as 500,1000,2000")
            raise BadOption("points", message % {"part": repr(part)})
    if len(parts) > MOST_POINTS:
        message = _("%(count)s points are too many: a curve has %(most)s at most")
        raise BadOption("points", message % {"count": len(parts), "most": MOST_POINTS})
    return parts


class CurveOptions(TrainingOptions):
    """Options of a learning curve: those of a training, the curve's points and the order of its queries."""

    points: Annotated[tuple[int, ...], BeforeValidator(parse_points)] = option(
        _("Points (numbers of labels)"),
        _("Numbers with commas between them, such as 500,1000,2000. Each is a training of its own."),
    )
    order: LearningCurve.Order = option(
        _("Order of the queries"),
        _("Each point takes the first queries of this order, always whole queries."),
        default=LearningCurve.Order.TIME,
    )
