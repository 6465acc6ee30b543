"""Ratings of search tools for the grades of a collection. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from corpus.errors import BadOption

PLACES = 3  # Decimals of a rating that is a share, as in OpenSearch's examples.
_RATING = re.compile(r"\s*(\d{1,3})\s*=\s*(\d{1,6}(?:\.\d{1,6})?)\s*")


@dataclass(frozen=True, slots=True)
class RatingRule:
    """Which ratings a tool takes: shares from 0 to 1, or whole numbers, which its own scorers may limit."""

    is_share: bool = False
    highest: int | None = None  # The highest rating of the tool's graded scorers; None: any.


def read_scale(text: str) -> dict[int, float]:
    """Return the ratings by grade of a text such as 0=0,1=0.5,2=1; none for an empty text. Raises BadOption."""
    ratings: dict[int, float] = {}
    for part in text.split(",") if text.strip() else ():
        match = _RATING.fullmatch(part)
        if match is None or int(match[1]) in ratings:
            raise BadOption("scale", _("Write each grade once with its rating, as 0=0,1=0.33,2=0.67,3=1."))
        ratings[int(match[1])] = float(match[2])
    in_order = [ratings[grade] for grade in sorted(ratings)]
    if in_order != sorted(in_order):
        raise BadOption("scale", _("A higher grade cannot have a lower rating."))
    return ratings


def choose_ratings(rule: RatingRule, grades: int, text: str = "") -> dict[int, float]:
    """Return the rating of each grade from 0 to `grades`: those of the scale, or else the tool's default.

    Raises BadOption for a scale that leaves out a grade or does not fit the tool, and without one where
    the grades do not.
    """
    if not text.strip():
        if rule.highest is not None and grades > rule.highest:
            message = _("The tool's ratings go from 0 to %(highest)s and the grades to %(grades)s: give a scale.")
            raise BadOption("scale", message % {"highest": rule.highest, "grades": grades})
        return {grade: round(grade / grades, PLACES) if rule.is_share else grade for grade in range(grades + 1)}
    ratings = read_scale(text)
    if ratings.keys() != set(range(grades + 1)):
        raise BadOption("scale", _("Give a rating for each grade from 0 to %(grades)s.") % {"grades": grades})
    ratings = dict(sorted(ratings.items()))
    if rule.is_share:
        return ratings
    if not all(rating.is_integer() for rating in ratings.values()):
        raise BadOption("scale", _("This tool takes whole numbers as ratings."))
    return {grade: int(rating) for grade, rating in ratings.items()}


def describe_ratings(ratings: Mapping[Any, float]) -> str:
    """Return ratings as the option takes them, 0=0, 1=0.5, 2=1; the grades are in order, as keys of JSON are texts."""
    return ", ".join(f"{grade}={rating}" for grade, rating in ratings.items())
