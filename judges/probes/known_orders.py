"""Self-check of a judge before a large campaign: probes with a known order, and what the answers show. Pure.

A probe is a query with documents whose order of relevance is known. A judge that grades them in this order, and gives
the same grades when asked again, can still be wrong on a collection; a judge that does not is not worth trying there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

from django.utils.translation import gettext as _

from charts.translation import gettext_noop
from judges.records import Inputs

# Levels of a document: it answers the query; it has the same subject but no answer; it is about something else.
ANSWERS, SUBJECT, ELSEWHERE = 2, 1, 0
# Minimum shares for a judge to pass: document pairs in order, equal repeats, answers.
ORDERED, REPEATED, ANSWERED = 0.85, 0.9, 0.95
PROBLEMS = {
    "answered": gettext_noop("%(asked)s of %(asked2)s questions got no verdict"),
    "clear": gettext_noop(
        "%(right)s of %(n)s document pairs in the expected order (%(tied)s tied, %(reversed)s reversed)"
    ),
    "near": gettext_noop("%(reversed)s of %(n)s neighbouring levels reversed"),
    "own": gettext_noop("%(reversed)s of %(n)s document pairs of the collection reversed"),
    "repeated": gettext_noop("same answer both times on %(repeated)s of %(repeats)s documents"),
}

Grade = int | None  # On the judge's own scale; None without a verdict.


@dataclass(frozen=True, slots=True)
class Probe:
    """Documents of one query with their levels. `own`: pairs of the collection, ordered by its reference grades."""

    name: str
    documents: tuple[tuple[int, Inputs], ...]
    own: bool = False


@dataclass(frozen=True, slots=True)
class OrderedCouples:
    """Counts of pairs of documents of a probe, by the order of their grades: right, tied, or reversed."""

    right: int = 0
    tied: int = 0
    reversed: int = 0

    @property
    def n(self) -> int:
        """Number of pairs with a grade for both documents."""
        return self.right + self.tied + self.reversed

    @property
    def share(self) -> float | None:
        """The share of pairs in the right order; None without pairs."""
        return self.right / self.n if self.n else None

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name, to fill in sentences."""
        return asdict(self) | {"n": self.n}


@dataclass(frozen=True, slots=True)
class Findings:
    """Findings from one judge's answers."""

    asked: int
    answered: int
    clear: OrderedCouples  # An answer against another subject, which differ on every scale.
    near: OrderedCouples  # Neighbouring levels, some of which tie on a scale of two grades.
    own: OrderedCouples  # Relevant against not relevant by the collection's reference grades.
    repeats: int  # Documents that were graded more than once.
    repeated: int  # Those of them that always got the same grade.

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the judge fails the probes, in words; empty if it passes."""
        counts = {
            "answered": {"asked": self.asked - self.answered, "asked2": self.asked},
            "repeated": {"repeated": self.repeated, "repeats": self.repeats},
            **{kind: getattr(self, kind).counts for kind in ("clear", "near", "own")},
        }
        failed = {
            "answered": self.answered < ANSWERED * self.asked,
            "clear": (self.clear.share or 0.0) < ORDERED,
            "near": self.near.reversed > (1 - ORDERED) * max(self.near.n, 1),
            "own": self.own.reversed > 0 and self.own.reversed >= self.own.right,
            "repeated": self.repeated < REPEATED * self.repeats,
        }
        return tuple(_(PROBLEMS[key]) % counts[key] for key, fails in failed.items() if fails)

    @property
    def passes(self) -> bool:
        return not self.problems


def count_findings(probes: Sequence[Probe], grades: Mapping[tuple[str, int], Sequence[Grade]]) -> Findings:
    """Count findings in a judge's answers. `grades`: by probe and document, one for each repetition.

    The first verdict on a document counts for the order.
    """
    counts: dict[str, list[int]] = {"clear": [0, 0, 0], "near": [0, 0, 0], "own": [0, 0, 0]}
    for probe in probes:
        first_grades = [
            next((grade for grade in grades[probe.name, index] if grade is not None), None)
            for index in range(len(probe.documents))
        ]
        graded = [
            (level, grade)
            for (level, _inputs), grade in zip(probe.documents, first_grades, strict=True)
            if grade is not None
        ]
        for (low_level, low_grade), (high_level, high_grade) in combinations(sorted(graded), 2):
            if low_level == high_level:
                continue
            kind = "own" if probe.own else "clear" if high_level - low_level > 1 else "near"
            counts[kind][0 if high_grade > low_grade else 1 if high_grade == low_grade else 2] += 1
    verdict_lists = [[grade for grade in answers if grade is not None] for answers in grades.values()]
    repeated_answers = [answers for answers in verdict_lists if len(answers) > 1]
    return Findings(
        asked=sum(map(len, grades.values())),
        answered=sum(map(len, verdict_lists)),
        clear=OrderedCouples(*counts["clear"]),
        near=OrderedCouples(*counts["near"]),
        own=OrderedCouples(*counts["own"]),
        repeated=sum(len(set(answers)) == 1 for answers in repeated_answers),
        repeats=len(repeated_answers),
    )


# A query, its answer, and three documents: one that gives the full answer, one on the same subject without it, and one
# about something else. They are short and plain, and from no collection that a judge may have memorized.
_TEXTS = (
    (
        "How long should black tea steep?",
        "Three to five minutes.",
        "For black tea, pour on water that has just boiled and leave the leaves in it for three to five minutes. After "
        "five minutes it turns bitter.",
        "Black tea came to Europe by ship in the seventeenth century. It was dear, and was kept in locked boxes.",
        "The bridge was closed for repairs from March to June, and buses took another way.",
    ),
    (
        "Which planet of the solar system has the shortest year?",
        "Mercury.",
        "A year is one way round the sun. Mercury's is the shortest of all planets in the solar system: 88 days.",
        "The planets of the solar system formed from a disc of gas and dust around the young sun.",
        "To prune a rose, cut just above a bud that faces outwards, and cut at a slant.",
    ),
    (
        "How do I undo my last commit in git and keep the changes?",
        "git reset --soft HEAD~1",
        "To take back the newest commit in git while your changes stay in the working tree and in the index, run git "
        "reset --soft HEAD~1.",
        "In git a commit records a snapshot of the files with an author, a date and a message.",
        "The choir rehearses on Tuesdays at seven. New voices, above all tenors, are welcome.",
    ),
    (
        "What fee does the Lindow town library charge for a lost reader's card?",
        "Four pounds.",
        "Lindow town library. A reader's card that was lost is replaced at the desk; the fee is four pounds.",
        "Lindow town library is open from nine to six on weekdays. A reader's card is made while you wait.",
        "Lava cools quickly where it meets the sea, and breaks into black sand.",
    ),
    (
        "Why do leaves turn yellow in autumn?",
        "The green chlorophyll is broken down, and yellow carotenoids that were there all along show.",
        "In autumn trees break down the green chlorophyll in their leaves. The yellow carotenoids were there all the "
        "time; now nothing hides them, and the leaves look yellow.",
        "Many people travel in autumn to see the yellow and red leaves. The best weeks are in October.",
        "An invoice must carry a number, a date and the address of whoever receives it.",
    ),
    (
        "Welche Nummer hat der Notruf der Feuerwehr in Deutschland?",
        "112.",
        "Den Notruf der Feuerwehr erreichen Sie in Deutschland überall unter der Nummer 112, auch vom Mobiltelefon.",
        "Die Feuerwehr in Deutschland besteht in kleinen Orten meist aus Freiwilligen.",
        "Der Teig ruht eine Stunde im Kühlschrank, bevor er ausgerollt wird.",
    ),
    (
        "水在标准大气压下的沸点是多少？",
        "100摄氏度。",
        "在标准大气压下，水的沸点是100摄氏度。气压越低，沸点也越低。",
        "水覆盖了地球表面的大部分，是生命所必需的物质。",
        "这家书店每周一休息，其他日子从上午十点开到晚上八点。",
    ),
    (
        "How many players of one side are on the field in a game of rugby union?",
        "Fifteen.",
        "In rugby union each side has fifteen players on the field: eight forwards and seven backs.",
        "Rugby union is played with an oval ball, and a try is worth five points.",
        "The recipe calls for two eggs, a cup of milk and a pinch of salt.",
    ),
)


def built_in(*, answers: bool) -> tuple[Probe, ...]:
    """Return the probes for every judge. `answers`: whether queries list their answers, as the collection's do."""
    return tuple(
        Probe(
            f"probe-{number}",
            tuple(
                (level, Inputs(query, (answer,) if answers else (), "", text))
                for level, text in zip((ANSWERS, SUBJECT, ELSEWHERE), texts, strict=True)
            ),
        )
        for number, (query, answer, *texts) in enumerate(_TEXTS, 1)
    )
