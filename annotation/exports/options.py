"""Options of an export: its format, its labels, and the choices of a training set."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from pydantic import AfterValidator, BeforeValidator, model_validator

from actions.options import Options, option, split_names
from annotation.exports.formats import ALL_FORMATS, Format
from annotation.exports.query_splits.parts import SPLITS
from annotation.exports.ratings.scales import read_scale
from corpus.errors import BadOption

if TYPE_CHECKING:
    FormatName = str
    Side = str
else:
    FormatName, Side = Literal[tuple(ALL_FORMATS)], Literal[SPLITS]
NEAR = 0.8
# Formats for measuring systems, whose scores depend on every judgment.
BENCHMARKS = ("beir", "mteb")
MOST = 1 << 31
MADE_OF_GRADES = ("majority", "dawid-skene")  # Aggregates that are not labels of the collection.
# Options of all formats; the others are of training sets.
OF_FORMAT = ("format", "origins", "leave_out_failed", "aggregate", "assessors")
# Options that only some formats of one file take.
OF_SOME = ("thresholds", "scale", "endpoint", "index")
# Options that would change or reduce the grades of a version of the qrels.
CHANGING = (
    "aggregate", "origins", "leave_out_failed", "run", "agreement", "negatives", "documents", "balance", "collections",
    "quota", "uniform", "labels",
)  # fmt: skip
# Options about labels and further documents, which erank-sft does not take: its documents are already drawn and scored.
FIXED = ("run", "agreement", "origins", "balance", "aggregate", "qrels")
# The same of preferences, whose documents are those that were compared.
OF_COMPARISONS = (*FIXED, "negatives", "documents")
OTHERS = "sets that draw from several collections are made on the server, by who may read them all"


def _name(words: Mapping[str, Any]) -> dict[str, Any]:
    return {name: format_lazy("{}: {}", name, title) for name, title in words.items()}


class ExportOptions(Options):
    """Options of an export. `None`: no limit."""

    format: FormatName = option(_("Format"), choices={form.name: form.title for form in ALL_FORMATS.values()})
    origins: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(split_names),
        AfterValidator(lambda names: names and tuple(sorted(set(names)))),
    ] = option(
        _("Label source"),
        _("Only their labels: people, adjudicator, or the name of a policy. Leave blank for all."),
        default=None,
        at_most=50,
    )
    leave_out_failed: bool = option(
        _("Leave out failed routes"),
        _("Leave out labels that people have not completed, of routes that failed their label audit."),
        default=False,
    )
    aggregate: Literal["majority", "dawid-skene", "resolved"] | None = option(
        _("Labels"),
        _("Labels of all grades, with Dawid-Skene's posterior. Empty: the labels as they are."),
        default=None,
        choices={
            "majority": _("the grade that most judges, people and imports gave; ties are left out"),
            "dawid-skene": _("the most probable grade, with each assessor's errors estimated"),
            "resolved": _("the label of the collection"),
        },
    )
    assessors: Annotated[tuple[str, ...], BeforeValidator(split_names)] = option(
        _("Grades by"),
        _("With an aggregate: names of assessors, or people or judges for all of them. Empty: all grades."),
        default=(),
        at_most=1000,
    )
    teacher: Annotated[
        Literal["scores", "votes", "labels"],
        BeforeValidator(lambda name, info: name or ("scores" if info.data.get("format") == "prism" else "labels")),
    ] = option(
        _("Target score"),
        _(
            "With “votes”, pairs with fewer votes than the panel has members are excluded. "
            "Where nothing is chosen: scores for Prism, else labels."
        ),
        default=None,
        validate_default=True,
        choices=_name(
            {
                "scores": _("reranker score of each pair"),
                "votes": _("share of panel votes for “relevant”"),
                "labels": _("the label: 0 or 1"),
            }
        ),
    )
    split: float = option(_("Share of queries for training"), _("1 = no dev set"), default=0.9, ge=0.01, le=1)
    seed: int = option(_("Seed"), _("The same seed selects the same queries."), default=0, ge=0, lt=MOST)
    near_duplicates: Annotated[float | None, BeforeValidator(lambda value: 0 if value in (None, "off") else value)] = (
        option(
            _("Similarity of near-duplicates"),
            _(
                "Texts at least this similar stay in the same split. Blank: 0.8, or off for BEIR and MTEB, which keep "
                "every judgment. 0: off."
            ),
            default=None,
            ge=0,
            le=1,
        )
    )
    labels: Literal["resolved", "people", "machine"] = option(
        _("Label precedence"),
        default="resolved",
        choices=_name(
            {
                "resolved": _("adjudicator, then people, then policies"),
                "people": _("only labels from people or an adjudicator"),
                "machine": _("label from the policy, even where people disagree"),
            }
        ),
    )
    thresholds: Annotated[tuple[float, ...], BeforeValidator(split_names)] = option(
        _("Thresholds of strengths"),
        _(
            "For grades from comparisons: the lowest strength of each grade from 1, as -1, 0.5, 2. Blank: grades with "
            "equally many documents."
        ),
        default=(),
        at_most=100,
    )
    scale: str = option(
        _("Scale of ratings"),
        _(
            "For formats of search tools: the rating that each grade becomes, as 0=0,1=0.33,2=0.67,3=1. "
            "Blank: the format's own."
        ),
        default="",
        at_most=2000,
    )
    endpoint: str = option(
        _("Search endpoint"),
        _("For _rank_eval: its request is the template. Blank: a search in the default fields of the index."),
        default="",
        at_most=100,
    )
    index: str = option(
        _("Index"),
        _("For _rank_eval: where the documents are. Blank: the endpoint's, or the collection's name."),
        default="",
        at_most=255,
    )
    relevant_from: int | None = option(
        _("Lowest grade that counts as relevant"),
        _("Leave blank for the collection's setting."),
        default=None,
        ge=1,
        le=100,
    )
    agreement: float | None = option(
        _("Minimum panel agreement"),
        _("Share of votes that match a model's label. Labels from people are always kept. Leave blank for no minimum."),
        default=None,
        ge=0,
        le=1,
    )
    negatives: int | None = option(
        _("Negatives per positive"), _("Maximum. Leave blank for all."), default=None, ge=1, lt=MOST
    )
    documents: int | None = option(
        _("Documents per query"),
        _("Exact number; queries with fewer documents are excluded. Leave blank for all."),
        default=None,
        ge=1,
        lt=MOST,
    )
    run: str | None = option(
        _("Hard negatives from a run"),
        _("A TREC run file. Its unjudged documents become negatives marked as assumed."),
        default=None,
    )
    ranks: str = option(_("Ranks of the run"), _("Where its documents are taken, both included."), default="11-100")
    keep_holes: bool = option(
        _("Include documents that a panel or a reranker scores high (likely holes)"), default=False
    )
    balance: bool = option(_("Balance length by score, so that models cannot use length as a shortcut"), default=False)
    balance_entropy: Literal["filled", "prism"] = option(
        _("Balance measure"),
        default="filled",
        choices=_name(
            {
                "filled": _("evenness over the cells that contain a pair"),
                "prism": _("as in Prism: over all 48 cells, so nearly all of them must contain pairs"),
            }
        ),
    )
    tokenizer: str | None = option(
        _("Tokenizer for lengths"),
        _("A tokenizer.json file. Lengths are counted in its tokens. Leave blank to count words."),
        default=None,
    )
    collections: Annotated[tuple[str, ...], BeforeValidator(split_names)] = option(
        _("Further collections"), _("The set is drawn from them, too."), default=()
    )
    quota: int | None = option(_("Queries of each collection"), default=None, ge=1, lt=MOST)
    uniform: bool = option(_("The same number of queries from each collection"), default=False)
    synthetic_dev: bool = option(_("Let synthetic queries enter the dev split, too"), default=False)
    allow_incomplete: bool = option(
        _("Export even if a split is empty or the training split has only one label"), default=False
    )
    named_splits: dict[Side, str] = option(
        _("Named splits"),
        _("A kept list of queries, or the split that queries carry, by the split that they become."),
        default={},
    )
    qrels: int | None = option(
        _("Grades of a qrels version (BEIR, MTEB)"),
        _("Such as one with its holes filled. All queries are then in the test split."),
        default=None,
        ge=1,
        lt=MOST,
    )
    preset: Literal["paper", "released"] = option(
        _("Losses (Prism)"),
        default="paper",
        choices=_name(
            {
                "paper": _("both losses on every row"),
                "released": _("score to the power of 1.609; the point-wise loss only where it agrees with the label"),
            }
        ),
    )
    shape: Literal["pair", "triplet", "n-tuple", "list"] = option(
        _("Shape (sentence-transformers)"),
        default="pair",
        choices=_name(
            {
                "pair": _("query, document, label"),
                "triplet": _("anchor, positive, negative"),
                "n-tuple": _("anchor, positive, negative_1 and more"),
                "list": _("query, docs, labels"),
            }
        ),
    )

    leaves_out: ClassVar = {
        "page": {
            "run": "a file comes with the page: its form has a field of files for it",
            "tokenizer": "the same",
            "named_splits": "the form has a field for each of train, dev and test, with the names that there are",
            **dict.fromkeys(("collections", "quota", "uniform"), OTHERS),
        },
        "operation": {
            **dict.fromkeys(("run", "tokenizer"), "it names a file of the server"),
            **dict.fromkeys(("ranks", "keep_holes"), "it is about the run"),
            **dict.fromkeys(("collections", "quota", "uniform"), OTHERS),
        },
        "command": {"named_splits": "split takes SPLIT=NAME, too"},
    }

    @model_validator(mode="after")
    def go_together(self) -> Self:
        """Refuse options that do not go together. Raises BadOption with the first of them."""
        low, dash, high = self.ranks.partition("-")
        if not (dash and low.isdecimal() and high.isdecimal() and 1 <= int(low) <= int(high)):
            raise BadOption("ranks", _("Enter two ranks such as 11-100, the smaller first."))
        set_names = [name for name in type(self).model_fields if name in self.model_fields_set]
        changed_names = [name for name in set_names if getattr(self, name) != type(self).model_fields[name].default]
        not_taken = [name for name in changed_names if name in OF_SOME and name not in self.form.takes]
        self._refuse(not_taken, _("%(format)s does not take this: leave it out."))
        if not self.form.is_set:
            sentence = _("This is for training sets: %(format)s is one file and never split.")
            taken = (*OF_FORMAT, *OF_SOME, *self.form.takes)
            self._refuse([name for name in set_names if name not in taken], sentence)
        read_scale(self.scale)
        if list(self.thresholds) != sorted(set(self.thresholds)):
            raise BadOption("thresholds", _("Enter ascending numbers."))
        if not self.form.labels:
            without = ("origins", "leave_out_failed", "aggregate")
            self._refuse(
                [name for name in changed_names if name in without],
                _("%(format)s has no labels: leave this out."),
            )
        if self.aggregate in MADE_OF_GRADES:
            sentence = _("%(aggregate)s makes labels of all grades: leave this out.")
            self._refuse([name for name in changed_names if name in ("origins", "labels")], sentence)
        if self.assessors and not self.aggregate:
            self._refuse(["assessors"], _("Labels of chosen assessors need an aggregate: choose one."))
        if self.format == "erank-sft":
            sentence = _("This does not go with erank-sft: synthesize_scores chose its documents.")
            self._refuse([name for name in changed_names if name in FIXED], sentence)
        if self.format == "preferences":
            sentence = _("Preferences are about the documents that were compared: leave this out.")
            self._refuse([name for name in changed_names if name in OF_COMPARISONS], sentence)
        if self.qrels is not None:
            if self.format not in BENCHMARKS:
                sentence = _("Only the formats beir and mteb take a version of the qrels, not %(format)s.")
                self._refuse(["qrels"], sentence)
            sentence = _("A version of the qrels is exported unchanged: leave this out.")
            self._refuse([name for name in changed_names if name in CHANGING], sentence)
            sentence = _(
                "All queries of a qrels version are in the test split: leave the share blank, or name queries."
            )
            self._refuse([name for name in set_names if name == "split"], sentence)
        return self

    def _refuse(self, names: list[str], sentence: Any) -> None:
        """Raise BadOption with this sentence for the first of the options, if there is one."""
        if names:
            name = "split" if names[0] == "named_splits" else names[0]
            raise BadOption(name, sentence % {"format": self.format, "aggregate": self.aggregate})

    @property
    def form(self) -> Format:
        """The format."""
        return ALL_FORMATS[self.format]

    @property
    def near(self) -> float | None:
        """Jaccard similarity from which texts are near-duplicates; None: they may be on both sides."""
        if self.near_duplicates is None:
            return None if self.format in BENCHMARKS else NEAR
        return self.near_duplicates or None

    @property
    def rank_range(self) -> tuple[int, int]:
        """First and last rank of the run's documents, from 1, both included."""
        low, _dash, high = self.ranks.partition("-")
        return int(low), int(high)

    def in_manifest(self) -> dict[str, Any]:
        """Return the options of a training set by name, as JSON."""
        choices = self.model_dump(mode="json", exclude={"format", "near_duplicates"})
        named = [f"{side}={name}" for side, name in self.named_splits.items()]
        return choices | {"near": self.near, "ranks": list(self.rank_range), "named_splits": named}
