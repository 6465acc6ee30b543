"""Options for making a run and for importing runs."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from pydantic import BeforeValidator, field_validator, model_validator

from actions.options import Names, Options, option, split_names
from benchmark.models import Run
from corpus.errors import BadOption
from judges.model_jobs.options import LIMITS, PaidOptions

Kind = Run.Kind
System = Literal[
    "bm25", "static", "hybrid", "rewrite", "reasoning", "dense", "rerank", "embedding", "sparse", "rerank-folder",
    "search",
]  # fmt: skip
COMMON = ("name", "depth", "keep_self")
# The options on the page of a system, in addition to COMMON.
TAKES: dict[str, tuple[str, ...]] = {
    Kind.BM25: ("k1", "b"),
    Kind.STATIC: (),
    Kind.HYBRID: ("run", "method", "scores", "k1", "b"),
    Kind.REWRITE: ("method", "judge", "samples", "over", *LIMITS),
    Kind.REASONING: ("judge", "over", *LIMITS),
    Kind.DENSE: ("judge", "instruction", "query_prefix", "document_prefix", *LIMITS),
    Kind.RERANK: ("run", "judge", "instruction", "top", *LIMITS),
    Kind.SPARSE: ("model", "batch_size"),
    Kind.RERANK_FOLDER: ("run", "model", "prompt", "instruction", "top", "batch_size"),
    Kind.SEARCH: ("endpoint",),
}
# Further options of a system.
BEYOND: dict[str, tuple[str, ...]] = {
    Kind.HYBRID: ("runs", "weights"),
    Kind.REWRITE: ("k1", "b"),
    Kind.REASONING: ("k1", "b"),
    Kind.RERANK: ("instructions",),
    Kind.EMBEDDING: ("model", "query_prefix", "document_prefix", "device"),
    Kind.SPARSE: ("device",),
    Kind.RERANK_FOLDER: ("instructions", "device"),
}
NEEDS = ("judge", "model", "endpoint")  # Required by every system that takes them.
OFFERED = (
    "judge",
    "run",
    "model",
    "endpoint",
)  # Options with choices on the page; without any choice no run can be made.
METHODS = {Kind.HYBRID: ("minmax", "zscore", "sum", "rrf"), Kind.REWRITE: ("hyde", "query2doc", "mugi")}
METHOD_WORDS = {
    "minmax": _("min-max: 0.1 × BM25 + 0.9 × reranker"),
    "zscore": _("z-score: 0.2 × BM25 + 0.8 × reranker"),
    "sum": _("sum: BM25 + 100 × reranker"),
    "rrf": _("reciprocal rank fusion of whole runs (k = 60)"),
    "hyde": _("HyDE: search with a hypothetical answer passage"),
    "query2doc": _("query2doc: query plus one hypothetical passage"),
    "mugi": _("MuGI: query plus several hypothetical passages"),
}


class RunOptions(PaidOptions):
    """Options for making a run; TAKES and BEYOND say which a system takes."""

    system: System = option(
        _("Type"),
        _("The system that ranks."),
        default="bm25",
        choices={str(kind): kind.label for kind in Kind},
    )
    name: str = option(_("Name"), _("Empty: named after its system."), default="", at_most=100)
    depth: int = option(_("Documents per query"), default=100, ge=1, le=10_000)
    k1: float | None = option(
        _("BM25: k1"),
        _("Term frequency saturation: with a lower value, repeated terms add less. Pyserini uses 0.9."),
        default=None,
        initial=1.5,
        ge=0,
        le=10,
        allow_inf_nan=False,
    )
    b: float | None = option(
        _("BM25: b"),
        _("Length normalization: with a higher value, long documents score lower. Pyserini uses 0.4."),
        default=None,
        initial=0.75,
        ge=0,
        le=1,
        allow_inf_nan=False,
    )
    method: Literal["minmax", "zscore", "sum", "rrf", "hyde", "query2doc", "mugi"] | None = option(
        _("Method"),
        _("How scores are combined, or how a query is rewritten. Empty: the first of its system."),
        default=None,
        choices=METHOD_WORDS,
    )
    run: str = option(_("Run to rerank"), _("In a hybrid: the reranked run."), default="", at_most=100)
    runs: Names = option(
        _("Runs to combine"),
        _("The BM25 run, whose k1 and b are used, and the reranked run. With rrf: two or more of any kind."),
        default=(),
    )
    weights: Annotated[tuple[float, ...], BeforeValidator(split_names)] = option(
        _("Weights"), _("Of BM25 and of the reranked run, such as 0.3,0.7. Empty: the method's."), default=()
    )
    scores: Literal["margins", "grades", "plain"] | None = option(
        _("Scores of the reranked run"),
        _("Empty: as its model writes them, or as they look."),
        default=None,
        choices={
            "margins": _("log odds: apply the sigmoid first"),
            "grades": _("grades: an answer without a grade counts as the lowest of its query"),
            "plain": _("use as they are"),
        },
    )
    judge: str = option(pgettext_lazy("judge", "Model"), _("Models in the judges file."), default="", at_most=100)
    samples: int | None = option(
        _("Texts per query"), _("Leave blank for the method's default."), default=None, ge=1, le=20
    )
    over: str = option(
        _("Search with"), _("Empty: BM25; with a judge's embeddings: dense:JUDGE."), default="", at_most=120
    )
    instruction: str = option(
        pgettext_lazy("retrieval", "Instruction"),
        _("The instruction for the model. Leave blank for none."),
        default="",
        at_most=4000,
        long=True,
    )
    instructions: dict[str, str] = option(
        _("Instructions by query"), _("In place of the queries' own, by query id."), default={}
    )
    query_prefix: str = option(_("Query prefix"), default="", at_most=200)
    document_prefix: str = option(_("Document prefix"), default="", at_most=200)
    top: int = option(_("Documents to rerank per query"), default=100, ge=1, le=1000)
    model: str = option(
        _("Model folder"),
        _("A folder among the base models of this site (QUORUM_BASE_MODELS); for a command any folder."),
        default="",
        at_most=1000,
    )
    prompt: str = option(
        _("Prompt"),
        _("How a model is asked that does not say so itself. monoT5 models need monot5, multilingual ones mmonot5."),
        default="",
        at_most=100,
    )
    batch_size: int = option(_("Texts per batch"), default=32, ge=1, le=4096)
    device: Literal["cpu", "cuda"] = option(_("Device"), _("Where the model of a folder runs."), default="cpu")
    endpoint: str = option(
        _("Search endpoint"), _("The search engine that answers the queries."), default="", at_most=100
    )
    keep_self: bool = option(_("Keep a query that is also a document in its own ranking"), default=False)
    synthetic: bool = option(
        _("Rank queries that models wrote, too"),
        _("Synthetic ones and keyword forms are left out otherwise, where there are others."),
        default=False,
    )

    leaves_out: ClassVar = {
        "page": {
            "system": "selected before the form is shown, because the fields depend on it",
            "runs": "for reproducing a paper, by a command",
            "weights": "for reproducing a paper, by a command",
            "instructions": "read from a file by the command",
            "device": "the page uses the default device",
            "synthetic": "such queries are in no qrels: for studies, by a command",
        },
        "command": {"instructions": "the command reads them from a JSON Lines file"},
    }

    @field_validator("weights")
    @classmethod
    def two_weights(cls, weights: tuple[float, ...]) -> tuple[float, ...]:
        if weights and not (len(weights) == 2 and all(0 <= weight < 1e9 for weight in weights) and any(weights)):
            message = _("Weights must be two numbers of at least 0: for BM25 and for the reranked run")
            raise BadOption("weights", message)
        return weights

    @field_validator("over")
    @classmethod
    def known_search(cls, over: str) -> str:
        if over not in ("", Kind.BM25) and not over.removeprefix(f"{Kind.DENSE}:") != over:
            raise BadOption("over", _("Search with bm25, or with dense:JUDGE."))
        return over

    @model_validator(mode="after")
    def what_the_system_takes(self) -> Self:
        takes = (*TAKES.get(self.system, ()), *BEYOND.get(self.system, ()))
        for name in self.model_fields_set - {"system", "synthetic", *COMMON, *takes}:
            if getattr(self, name) != type(self).model_fields[name].get_default(call_default_factory=True):
                raise BadOption(name, _("The system %(system)s does not take this.") % {"system": self.system})
        for name in set(NEEDS) & set(takes):
            if not getattr(self, name):
                raise BadOption(name, _("The system %(system)s needs this.") % {"system": self.system})
        if self.method is not None and self.method not in METHODS[Kind(self.system)]:
            methods = ", ".join(METHODS[Kind(self.system)])
            raise BadOption("method", _("Choose one of %(known)s.") % {"known": methods})
        if self.instruction and self.query_prefix:
            message = _("An instruction and a prefix are both put before the query. Set only one.")
            raise BadOption("query_prefix", message)
        return self

    @property
    def run_name(self) -> str:
        """Return the run's name.

        By default bm25, hybrid-zscore, hyde-JUDGE, RUN+JUDGE, sparse-FOLDER, RUN+FOLDER or ENDPOINT-DATE.
        """
        if self.name:
            return self.name
        if self.is_dated:
            return f"{self.endpoint}-{timezone.now():%Y-%m-%d}"
        folder = Path(self.model).name
        if self.run and (self.judge or folder):
            return f"{self.run}+{self.judge or folder}"
        if folder:
            return f"{'dense' if Kind(self.system) == Kind.EMBEDDING else 'sparse'}-{folder}"
        method = self.method or METHODS.get(Kind(self.system), ("",))[0]
        parts = {Kind.HYBRID: (self.system, method), Kind.REWRITE: (method, self.judge)}
        return "-".join(part for part in parts.get(Kind(self.system), (self.system, self.judge)) if part)

    @property
    def is_dated(self) -> bool:
        """Whether the run is named by its endpoint and day, as an engine changes from day to day."""
        return bool(self.endpoint and not self.name)

    def for_job(self) -> dict[str, Any]:
        """Return the recipe of a run with its limits, without options left at their defaults."""
        recipe = self.model_dump(exclude_defaults=True, exclude={"system", "name", "depth", "over"})
        recipe |= {name: list(value) for name in ("runs", "weights") if (value := getattr(self, name))}
        if self.system in METHODS:
            recipe.setdefault("method", METHODS[Kind(self.system)][0])
        if self.system in (Kind.REWRITE, Kind.REASONING):
            kind, _colon, judge = (self.over or str(Kind.BM25)).partition(":")
            parameters = {name: recipe.pop(name) for name in ("k1", "b") if name in recipe}
            recipe["over"] = {"kind": kind, **({"judge": judge} if judge else {}), **parameters}
        return recipe | {"kind": self.system, "name": self.run_name, "depth": self.depth}


class RunImportOptions(Options):
    """Options for importing runs, in addition to their files."""

    run: str = option(_("Name"), _("For a single file. Replaces the file name."), default="", at_most=100)
    instruction: str = option(
        pgettext_lazy("retrieval", "Instruction"),
        _("The instruction that the system received, if any."),
        default="",
        at_most=4000,
        long=True,
    )
    skip_unknown: bool = option(_("Skip queries and documents that are not in the collection"), default=False)
    keep_self: bool = option(_("Keep a query that is also a document in its own ranking"), default=False)

    leaves_out: ClassVar = {"command": {"run": "the command names files as NAME=FILE"}}
