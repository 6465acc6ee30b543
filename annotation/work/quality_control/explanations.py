"""Explanations of gold pairs as a CSV file, which is downloaded with all gold and uploaded again."""

import csv
from collections.abc import Iterable, Iterator
from io import StringIO

from django.core.files.base import File
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotation.access.audit_log.recording import record
from annotation.models import User
from annotation.models.quality_control import GoldExplanation
from annotation.work.quality_control.onboarding import explanations_of
from charts.cells import csv_line, parse_csv_cell
from corpus.errors import BadInput
from corpus.labels import reference_grades
from corpus.models import Collection, Item, Pair

COLUMNS = ("query_id", "doc_id", "grade", "explanation", "written_by")
LONGEST = 5_000  # Characters of an explanation.
LARGEST = 20_000_000  # Bytes of an uploaded file.


def unexplained_practice(collection: Collection) -> list[int]:
    """Return the practice pairs of the active tests without an explanation: after these, a newcomer reads none."""
    practice = Item.objects.filter(
        collection=collection, reason=Item.Reason.QUALIFICATION, state=Item.State.STANDING, priority__lt=0
    )
    pairs = sorted(set(practice.values_list("pair", flat=True)))
    explained = explanations_of(collection, pairs)
    return [pair for pair in pairs if pair not in explained]


def csv_lines(collection: Collection) -> Iterator[str]:
    """Yield the lines of a CSV file of all gold with its explanations, the form in which they are uploaded."""
    grades = reference_grades(collection)
    explanations = explanations_of(collection, grades)
    yield csv_line(COLUMNS)
    for query, document, pair in _named_pairs(grades):
        of_pair = explanations.get(pair, [])
        text = "\n\n".join(explanation.text for explanation in of_pair)
        authors = ", ".join(dict.fromkeys(explanation.by for explanation in of_pair if explanation.by))
        yield csv_line([query, document, grades[pair], text, authors])


def _named_pairs(pairs: Iterable[int]) -> QuerySet[Pair, tuple[str, str, int]]:
    """Return query id, document id and key of the pairs with current texts, in the order of the ids."""
    rows = Pair.objects.filter(pk__in=pairs, query__is_current=True, document__is_current=True)
    names = ("query__external_id", "document__external_id")
    return rows.order_by(*names).values_list(*names, "pk")


@transaction.atomic
def upload_explanations(*, collection: Collection, file: "File[bytes]", by: User) -> tuple[int, int]:
    """Store the explanations of a CSV file with the columns of COLUMNS (grade and written_by may be missing).

    Returns how many were stored, and how many rows name no gold pair. An empty explanation deletes the stored one.
    Raises BadInput for a file that is too large or no such table, and for a grade that is not the pair's.
    """
    if file.size > LARGEST:
        raise BadInput(_("The file is larger than %(limit)s MB.") % {"limit": LARGEST // 1_000_000})
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(_("The file is not UTF-8 text. Save it as CSV in UTF-8.")) from None
    reader = csv.DictReader(StringIO(text.replace("\0", ""), newline=""))
    if missing := {"query_id", "doc_id", "explanation"} - set(reader.fieldnames or ()):
        raise BadInput(_("The file has no column %(names)s.") % {"names": ", ".join(sorted(missing))})
    grades = reference_grades(collection)
    pair_of = {(query, document): pair for query, document, pair in _named_pairs(grades)}
    uploaded: dict[int, tuple[str, str]] = {}  # Text and author by pair.
    unknown = 0
    try:
        for row in reader:
            values = {name: parse_csv_cell(row.get(name) or "").strip() for name in COLUMNS}
            pair = pair_of.get((values["query_id"], values["doc_id"]))
            if pair is None:
                unknown += 1
                continue
            if values["grade"] and values["grade"] != str(grades[pair]):
                message = _(
                    "Line %(line)s: the gold grade of this pair is %(grade)s, not %(other)s. Nothing was stored."
                )
                details = {"line": reader.line_num, "grade": grades[pair], "other": values["grade"]}
                raise BadInput(message % details)
            uploaded[pair] = (values["explanation"][:LONGEST], values["written_by"][:200])
    except csv.Error as error:
        raise BadInput(_("Line %(line)s: %(error)s") % {"line": reader.line_num, "error": error}) from None
    # A downloaded file also contains experts' comments and models' arguments; unchanged ones are not stored again.
    downloaded_texts = {
        pair: "\n\n".join(explanation.text for explanation in explanations).strip()
        for pair, explanations in explanations_of(collection, uploaded).items()
    }
    changed = {
        pair: (text, author) for pair, (text, author) in uploaded.items() if text != downloaded_texts.get(pair, "")
    }
    emptied = [pair for pair, (text, _author) in changed.items() if not text]
    GoldExplanation.objects.filter(pair__in=emptied).delete()
    GoldExplanation.objects.bulk_create(
        [
            GoldExplanation(pair_id=pair, text=text, written_by=author)
            for pair, (text, author) in changed.items()
            if text
        ],
        update_conflicts=True,
        unique_fields=["pair"],
        update_fields=["text", "written_by", "updated_at"],
    )
    record(by, "gold.explained", collection, n=len(changed), unknown=unknown)
    return len(changed), unknown
