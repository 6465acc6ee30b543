"""Spellings of grades in files: numbers as 2 or 2.0, or yes and no in words. Pure."""

import re

from django.utils.translation import gettext as _

# Programs write integers as 1.0 in a column with missing values.
_NUMBER = re.compile(r"([+-]?\d{1,9})(?:\.0+)?\Z")
# A rating of a search tool (corpus.formats.search_tools): a share of the scale, or one that its scale does not have.
_RATING = re.compile(r"(\d{1,9}(?:\.\d{1,30})?(?:[eE]-?\d{1,3})?) of (1|\d+=.*)\Z")
_NEAR = 0.005  # A share may be rounded to two decimals.
CACHED = 1_000  # The most results in the cache of spellings.
_BETWEEN = re.compile(r"[\s_-]+")
WORDS = {word: 1 for word in ("yes", "y", "true", "relevant")}
WORDS |= {word: 0 for word in ("no", "n", "false", "irrelevant", "not relevant", "non relevant", "nonrelevant")}


def is_grade(text: str) -> bool:
    """Return whether a text is a grade, in a number or in words."""
    return bool(_NUMBER.match(text)) or _simplify(text) in WORDS


def _simplify(text: str) -> str:
    return _BETWEEN.sub(" ", text.strip().lower())


class GradeReader:
    """The grades of one file, on a scale from 0 to `top`.

    Words mean 1 and 0. This is ambiguous, and reported as a problem, where grade 1 is not relevant
    (`relevant_from`), and in a file that also has a number above 1.
    """

    def __init__(self, top: int, relevant_from: int = 1) -> None:
        self.top, self.relevant_from = top, relevant_from
        self._word: tuple[int, str] | None = None  # The first line with a word, and the word.
        self._above: tuple[int, str] | None = None  # The first line with a number above 1.
        self._good: dict[str, tuple[int, str, str]] = {}  # A cache of results, until the first problem.

    def read(self, line: int, text: str) -> tuple[int, str, str]:
        """Return (grade, "", ""), or (0, problem, kind). Below 0 is not judged."""
        if cached_result := self._good.get(text):
            return cached_result
        result = self._read(line, text)
        if result[1]:
            self._good.clear()
        elif len(self._good) < CACHED:
            self._good[text] = result
        return result

    def _read(self, line: int, text: str) -> tuple[int, str, str]:
        if match := _NUMBER.match(text):
            grade = int(match[1])
            if grade > self.top:
                message = _("grade %(grade)s is above the highest grade %(top)s; raise the scale to %(grade)s")
                return 0, message % {"grade": grade, "top": self.top}, "out-of-range"
            if grade > 1:
                self._above = self._above or (line, str(grade))
                if self._word:
                    return 0, self._say_mixed(self._word, str(grade)), "malformed"
            return grade, "", ""
        if match := _RATING.match(text):
            rating, scale = float(match[1]), match[2]
            if scale == "1":
                grade = round(rating * self.top)
                if abs(rating - grade / self.top) <= _NEAR:
                    return grade, "", ""
                scale = ", ".join(f"{grade}={grade / self.top:.3g}" for grade in range(min(self.top, 10) + 1))
            message = _("the rating %(rating)s fits no grade of the scale %(scale)s")
            return 0, message % {"rating": match[1], "scale": scale}, "malformed"
        word = _simplify(text)
        if not word:
            return 0, _("the grade is empty"), "malformed"
        if word not in WORDS:
            return 0, _("the grade is not an integer, nor yes or no: %(value)r") % {"value": text[:40]}, "malformed"
        if self.relevant_from > 1:
            message = _(
                "the grade is %(value)r, but on this scale %(least)s is the lowest relevant grade; write numbers"
            )
            return 0, message % {"value": text[:40], "least": self.relevant_from}, "malformed"
        self._word = self._word or (line, text[:40])
        if self._above:
            return 0, self._say_mixed(self._above, text[:40]), "malformed"
        return WORDS[word], "", ""

    def _say_mixed(self, earlier: tuple[int, str], value: str) -> str:
        message = _("the grade is %(value)r, but line %(line)s has %(other)r; write all grades as numbers")
        return message % {"value": value, "line": earlier[0], "other": earlier[1]}
