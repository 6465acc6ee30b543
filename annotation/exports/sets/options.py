"""Options of a training set: every choice, its default and its check. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from annotation.label_sources.choices import MADE_OF_GRADES, check_aggregate
from charts.translation import gettext_noop
from corpus.errors import BadOption

TEACHERS = {
    "scores": gettext_noop("reranker score of each pair"),
    "votes": gettext_noop("share of panel votes for “relevant”"),
    "labels": gettext_noop("the label: 0 or 1"),
}
LABELS = {
    "resolved": gettext_noop("adjudicator, then people, then policies"),
    "people": gettext_noop("only labels from people or an adjudicator"),
    "machine": gettext_noop("label from the policy, even where people disagree"),
}
PRESETS = {
    "paper": gettext_noop("both losses on every row"),
    "released": gettext_noop("score to the power of 1.609; the point-wise loss only where it agrees with the label"),
}
SHAPES = {
    "pair": gettext_noop("query, document, label"),
    "triplet": gettext_noop("anchor, positive, negative"),
    "n-tuple": gettext_noop("anchor, positive, negative_1 and more"),
    "list": gettext_noop("query, docs, labels"),
}
ENTROPIES = {
    "filled": gettext_noop("evenness over the cells that contain a pair"),
    "prism": gettext_noop("as in Prism: over all 48 cells, so nearly all of them must contain pairs"),
}
TRAIN, DEV, TEST = "train", "dev", "test"
SPLITS = (TRAIN, DEV, TEST)
CHOICES = {"teacher": TEACHERS, "preset": PRESETS, "labels": LABELS, "shape": SHAPES, "balance_entropy": ENTROPIES}
NEAR = 0.8
# Formats that systems are measured by: a judgment that is left out changes their scores.
BENCHMARKS = ("beir", "mteb")
RANKS = (11, 100)  # Of a run, where nobody says which: below what is most likely relevant.


@dataclass(frozen=True, slots=True)
class SetOptions:
    """The choices of one training set. `None` leaves a limit out."""

    split: float = 0.9  # Share of the queries that are trained on; 1: no dev file.
    seed: int = 0
    teacher: str = "labels"  # Formats may have another: `format_defaults`.
    preset: str = "paper"
    labels: str = "resolved"
    origins: tuple[str, ...] | None = None
    # Leave out unsettled pairs of routes that failed their label audit.
    leave_out_failed: bool = False
    # Grades from here on are relevant; None: as the collection says.
    relevant_from: int | None = None
    # Smallest share of the panel's votes that must equal a machine's label.
    agreement: float | None = None
    negatives: int | None = None  # At most so many negatives for each positive of a query.
    # Exactly so many documents a query; queries with fewer are left out.
    documents: int | None = None
    run: str | None = None  # Name of the run file that negatives are taken from.
    ranks: tuple[int, int] = RANKS  # Ranks of that run, from 1, both ends included.
    # Take unjudged documents as negatives even where a panel or a reranker scores them high.
    keep_holes: bool = False
    # Jaccard similarity from which texts are near-duplicates; None: they may stand on both sides. Formats may have
    # another: `format_defaults`.
    near: float | None = NEAR
    balance: bool = False
    # What the entropy of the cells is divided by: the logarithm of the filled ones, or of all 48 (P eq. 5).
    balance_entropy: str = "filled"
    # A tokenizer.json: lengths of documents are counted in its tokens, as the paper does; None: in words.
    tokenizer: str | None = None
    shape: str = "pair"
    collections: tuple[str, ...] = ()  # Further collections that the set is drawn from.
    # Queries drawn from each collection; None: all, or as many as the smallest has when `uniform`.
    quota: int | None = None
    uniform: bool = False
    # Let queries that a model wrote be measured on, too.
    synthetic_dev: bool = False
    # Write the set even where a split is empty or train has only one label.
    allow_incomplete: bool = False
    # SPLIT=NAME: queries that are on a kept list of this name, or that carry it as their split, are that split.
    named_splits: tuple[str, ...] = ()
    # How grades become labels (AGGREGATES), with the posterior of each; None: the labels as they are.
    aggregate: str | None = None
    assessors: tuple[str, ...] = ()  # Whose grades the aggregate is made of, by name; none: everybody's.
    # Number of a version of the qrels whose grades are exported, all queries in test; None: the labels of now.
    qrels: int | None = None

    def __post_init__(self) -> None:
        """Raise BadInput that names the option and what it may be."""
        for name, known in CHOICES.items():
            if (value := getattr(self, name)) not in known:
                raise BadOption(name, f"Choose one of {', '.join(known)}, not {value}.")
        # A split or a similarity of 0 means nothing; an agreement of 0 does.
        for name, share, above in (
            ("split", self.split, True),
            ("agreement", self.agreement, False),
            ("near_duplicates", self.near, True),
        ):
            if share is not None and not (0 < share <= 1 or (share == 0 and not above)):
                raise BadOption(name, f"Enter a share {'above' if above else 'from'} 0 and up to 1, not {share:g}.")
        for name in ("negatives", "documents", "quota", "relevant_from"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise BadOption(name, f"Enter 1 or more, not {number}.")
        if self.aggregate is not None:
            check_aggregate(self.aggregate)
        if self.aggregate in MADE_OF_GRADES and self.labels != "resolved":
            raise BadOption("labels", f"The aggregate {self.aggregate} makes labels of all grades: leave this out.")
        if len(self.named_sides) < len(self.named_splits):
            raise BadOption("split", "Give each of train, dev and test at most one name.")
        low, high = self.ranks
        if not 1 <= low <= high:
            raise BadOption("ranks", f"Enter two ranks from 1, the smaller first, not {low}-{high}.")

    @property
    def named_sides(self) -> dict[str, str]:
        """The name of the queries of each split that is fixed. Raises BadInput for what is no SPLIT=NAME."""
        return dict(parse_named_split(text) for text in self.named_splits)

    def in_manifest(self) -> dict[str, Any]:
        """Return every option by its name, as JSON holds it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "SetOptions":
        """Build the options from what `in_manifest` gave; unknown names are ignored."""
        known = {field.name for field in fields(cls)} & set(values)
        chosen: dict[str, Any] = {name: tuple(v) if isinstance(v := values[name], list) else v for name in known}
        return cls(**chosen)


def parse_named_split(text: str) -> tuple[str, str]:
    """Read `test=NAME`. Raises BadInput for anything else."""
    side, _, name = text.partition("=")
    if side not in SPLITS or not name:
        raise BadOption("split", f"Enter a share such as 0.9, or train=NAME, dev=NAME or test=NAME, not {text}.")
    return side, name


def format_defaults(format_name: str) -> dict[str, Any]:
    """Return the options whose defaults depend on the format: what holds where nobody names them."""
    return {
        # Prism must be told when it shall not learn from scores; the others carry labels.
        "teacher": "scores" if format_name == "prism" else "labels",
        "near": None if format_name in BENCHMARKS else NEAR,
    }


def ranks_of(text: str) -> tuple[int, int]:
    """Read `11-100` as two ranks. Raises BadInput for anything else."""
    first, dash, last = text.partition("-")
    if not (dash and first.isdecimal() and last.isdecimal()):
        raise BadOption("ranks", f"Enter two ranks such as 11-100, not {text}.")
    return int(first), int(last)


def names_of(text: str | None) -> tuple[str, ...]:
    """Return the names between commas, without blanks."""
    return tuple(name for part in (text or "").split(",") if (name := part.strip()))
