"""Options of an import of files."""

from typing import Annotated, Literal

from django.utils.translation import gettext_lazy as _
from pydantic import BeforeValidator

from actions.options import Options, option


class ImportOptions(Options):
    """Options of an import of files; after its check, options that are left out do not change."""

    bm25: int | None = option(
        _("BM25 candidates for each query"),
        _("Adds the best documents of each query as pairs, for example 10."),
        default=0, ge=0, le=1_000, clears=True,
    )  # fmt: skip
    static: int | None = option(
        _("Candidates for each query by static embeddings"),
        _("Adds the nearest documents of each query as pairs, also those that share no word with it."),
        default=0, ge=0, le=1_000, clears=True,
    )  # fmt: skip
    depth: int = option(
        _("Top ranks of each run"), _("So many of its documents for each query become candidates."), default=10, ge=1
    )
    qrels_pairs: bool = option(
        _("Make the pairs of the qrels candidates"), _("Without other candidates they always are."), default=False
    )
    grades: int | None = option(
        _("Highest grade of the scale"), _("Empty: the collection’s, 3 for a new one."), default=None, ge=1, le=100
    )
    document_format: Literal["text", "markdown", "html"] | None = option(
        _("Format of documents and answers"),
        _("Empty: the collection’s, plain text for a new one."),
        default=None,
        choices={"text": _("Plain text"), "markdown": _("Markdown"), "html": _("HTML")},
    )
    graded_by: Annotated[Literal["human", "judge", "reference"] | None, BeforeValidator(lambda kind: kind or None)] = (
        option(
            _("Grades in the files are"),
            _("Empty: people’s where a file names its assessors, otherwise reference grades."),
            default=None,
            choices={
                "reference": _("Reference grades: used for measuring only"),
                "human": _("People’s judgments: used as labels"),
                "judge": _("Models’ judgments: used for measuring only"),
            },
            clears=True,
        )
    )
    query_ids: Literal["num", "position"] = option(
        _("Query ids"),
        default="num",
        choices={"num": _("As in their file"), "position": _("1, 2, … in the order of their file")},
    )
    empty: Literal["refuse", "keep"] = option(
        _("Documents without text"), default="refuse", choices={"refuse": _("Reject the file"), "keep": _("Keep them")}
    )
    update: bool = option(_("Update documents whose text changed (keeps history)"), default=False)
    keep_runs: bool = option(_("Also add rankings (runs) to the benchmark"), default=False)
    skip_unknown: bool = option(_("Leave out rows that name no known query or document"), default=False)
    keep_self: bool = option(_("Keep a query that is also a document among its own candidates"), default=False)
    kinds: dict[str, str] = option(
        _("What files are"), _("By the file’s name, or name/member; skip: leave it out."), default={}
    )
    columns: dict[str, dict[str, str]] = option(
        _("What columns are"), _("By the file’s name: its header’s columns and fields."), default={}
    )

    leaves_out = {
        "page": {
            "grades": "the collection is there, with its scale",
            "document_format": "the collection's settings have it",
            "kinds": "each file has fields of its own",
            "columns": "each file has fields of its own",
        },
        "command": {
            "kinds": "the options for files say what each is",
            "columns": "the option column names them, of all files",
        },
    }
