"""What the columns of a table mean, by their names and by what stands in their first rows. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

from django.utils.translation import gettext as _

from corpus.errors import BadOption
from corpus.formats import passages
from corpus.formats.cell_values import as_cell, parse_cell
from corpus.formats.files import MAX_COLUMNS
from corpus.formats.grade_values import is_grade
from corpus.formats.tool_exports import JUDGMENTS

# What a column can be, with the headers that say so: small letters, what is no letter or digit as "_".
HEADERS = {
    "query_id": "query_id qid queryid q_id query_no query_number topic topic_id topic_no search_id question_id",
    "query": "query query_text querytext question question_text search search_term search_query keywords anchor "
    "search_phrase user_input user_query",
    "answers": "answers answer reference_answer reference_answers gold_answer answers_text ground_truth ground_truths",
    "instruction": "instruction instructions",
    "doc_id": "doc_id docid docno document_id documentid d_id did corpus_id corpusid pid passage_id product_id "
    "corpus_ids doc_ids docids document_ids candidate_ids retrieved_context_ids",
    "title": "title doc_title document_title headline product_title product_name",
    "text": "text document doc passage body content contents document_text doc_text passage_text abstract segment "
    "context product_description",
    "positive": "positive pos positive_passage positive_document positive_text pos_text positives positive_passages "
    "positive_ctxs positive_ctx positive_docs positive_documents positive_messages pos_docs relevant_passages "
    "relevant_passage relevant_docs relevant_documents relevant_document gold_passages reference_contexts chosen",
    "negative": "negative neg negative_passage negative_document negative_text neg_text negatives negative_passages "
    "negative_ctxs negative_ctx negative_docs negative_documents negative_messages neg_docs hard_negative "
    "hard_negatives hard_negative_ctxs hard_negative_passages hard_neg hard_negs irrelevant_passages rejected",
    "passages": "passages docs documents ctxs contexts candidates hits retrieved_passages retrieved_documents "
    "retrieved_contexts",
    "positive_id": "positive_id pos_id positive_doc_id positive_docid positive_pid pos_pid doc_id_a positive_ids "
    "pos_ids positive_doc_ids positive_docids reference_context_ids gold_ids gold_doc_ids answer_pids",
    "negative_id": "negative_id neg_id negative_doc_id negative_docid negative_pid neg_pid doc_id_b negative_ids "
    "neg_ids negative_doc_ids negative_docids",
    "grade": "grade label gold relevance rel rating judgment judgement qrel relevance_label relevance_grade labels "
    "annotated_label relevance_score relevance_judgment relevance_rating grades",
    "score": "teacher_score score similarity revised_score scores teacher_scores",
    "positive_score": "positive_score positive_scores pos_score pos_scores",
    "negative_score": "negative_score negative_scores neg_score neg_scores",
    "rank": "rank",
    "assessor": "assessor annotator rater",
    "assumed": "assumed",
}
FIELDS = tuple(HEADERS)
METADATA, IGNORED = "metadata", "ignore"  # Of a column that is no field: kept with the text, or left out.
EVERY_FIELD = (*FIELDS, METADATA, IGNORED)
# Several documents of a row, and their scores: in a list, or in several columns as negative_1, negative_2.
LISTS = frozenset(
    {"positive", "negative", "passages", "positive_id", "negative_id", "positive_score", "negative_score"}
)
IDS = ("id", "identifier", "key")  # Of the query or of the document: the other columns tell.
SHOWN_VALUES = 1_000  # Of a list in a cell, that show what all of them are.
_RATED = ("grade", "score", "positive", "negative", "passages", "positive_id", "negative_id")
_JUDGED = ("annotations", "judgments", "judgements", "ratings", "assessments")  # Of which each is somebody's.
_TASK = "annotation_id"  # The column by which Label Studio's tables are known; their column "id" is the task's.
_FIELD_OF = {header: field for field, headers in HEADERS.items() for header in headers.split()}
# Headers that may mean a text or its id, a grade or a teacher's score: what stands in the column tells.
_TEXT_OR_ID = {"query": "query_id", "search": "query_id", "doc": "doc_id", "document": "doc_id", "passage": "doc_id"}
_GRADE_OR_SCORE = ("label", "labels", "relevance", "relevance_score", "relevance_label", "score")
_GRADES_TOO = ("relevant", "is_relevant", "relevancy", "is_selected", "positive")  # Where no other column is.
# Who gave a grade, where no column says so more plainly. Without grades they are whoever made a text, or read it.
_PEOPLE = {"annotator_id", "rater_id", "assessor_id", "worker", "worker_id", "annotator_name", "user", "user_id"}
_PEOPLE |= {"user_name", "username", "labeler", "labeller", "labeled_by", "reviewer", "judge", "completed_by"}
# Statistics of several grades are none.
_STATISTIC = re.compile(r".*_(?:variance|var|std|stdev|count|confidence|reason|comment|id)")
# What forms of crowdsourcing put before the name: "INPUT:query", "Answer.relevance".
_PREFIX = re.compile(r"(?:input|output|answer|data|fields?|assignment|golden)[:.](?=.)", re.IGNORECASE)
_ASSESSOR = re.compile(
    r"(?:annotator|rater|assessor|coder|expert|person|labell?er|reviewer)_?(?:\d+|[a-z])(?:_(?:label|grade|rating))?"
    r"|(?:label|grade|rating|relevance|judge?ment)_(?:\d+|[a-z])"
)
_GRADE_OF = re.compile(
    r"(?:label|grade|relevance|rating|judge?ment)_\w+|\w+_(?:label|grade|relevance|rating|judge?ment)"
)
# What a file is read for (detection.HOLDS), and the fields that are then read.
_READ = {
    "documents": {"doc_id", "title", "text", "positive", "negative", "passages", "positive_id", "negative_id"},
    "queries": {"query_id", "query", "answers", "instruction"},
    "pairs": set(FIELDS) - {"answers", "instruction", "rank"},
    "qrels": {"query_id", "query", "doc_id", "text", "title", "grade", "assumed"},
    "judgments": {"query_id", "query", "doc_id", "text", "title", "grade", "assessor", "assumed"},
    "runs": {"query_id", "doc_id", "score", "rank"},
}
Rows = Sequence[Sequence[str]]
COLUMN_HELP = f"what a column of a table is, where its header does not say so: {', '.join(EVERY_FIELD)}"


def parse_columns(given: Iterable[str]) -> dict[str, str]:
    """Return what columns are, by options HEADER=FIELD. BadInput for others."""
    pairs = [(option, *option.rpartition("=")[::2]) for option in given]
    for option, header, _field in pairs:
        if not header:
            raise BadOption("column", f"Write HEADER=FIELD, for example 'Search term=query', not {option}.")
    return {header: field for _option, header, field in pairs}


def simplify(header: str) -> str:
    """Return a header in small letters, all else "_"; `queryId` is `query_id`."""
    plain = _PREFIX.sub("", header, count=1)
    return re.sub(r"[^0-9a-z]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", plain).lower()).strip("_")


def name_fields(header: Iterable[str]) -> dict[str, str]:
    """Return the fields of headers, as far as their names alone tell."""
    found = {}
    for name in islice(header, MAX_COLUMNS):
        simple = simplify(name)
        # negative_1, negative_2: lists in several columns.
        field = _FIELD_OF.get(simple) or _FIELD_OF.get(re.sub(r"_?\d+$", "", simple), "")
        if field and (simple in _FIELD_OF or field in LISTS):
            found[name] = field
    return found


def name_pair(header: Sequence[str]) -> bool:
    """Return whether headers name a query, a document, and a grade, a score or a rank."""
    if len(header) > MAX_COLUMNS:
        return False
    fields = set(name_fields(header).values())
    if any(simplify(name) in _GRADES_TOO for name in header):
        fields.add("grade")
    return all(fields & some for some in ({"query_id", "query"}, {"doc_id", "text"}, {"grade", "score", "rank"}))


def name_assessors(header: Sequence[str], said: Mapping[str, str], *, of: Sequence[str] = ()) -> bool:
    """Return whether each column of grades is one assessor's: by name, as `said`, or in a book (`of`: its header)."""
    return _is_book(of) or all(_ASSESSOR.fullmatch(simplify(name)) or said.get(name) == "grade" for name in header)


def _is_book(header: Sequence[str]) -> bool:
    """Return whether a table is a book of Quepid: query, docid, and a column for each person by whatever name."""
    return [*map(simplify, header[:2])] == ["query", "docid"] and len(header) > 2


class Cells:
    """What stands in the first rows, by header; empty cells say nothing."""

    def __init__(self, header: Sequence[str], rows: Rows) -> None:
        self.of = {
            name: [row[place] for row in rows if place < len(row) and row[place].strip()]
            for place, name in enumerate(header)
        }

    def are_ids(self, name: str) -> bool:
        """True if the column holds ids: no blanks, mostly digits, unlike words."""
        cells = [cell for cell in self.of[name] if len(cell) < 256]
        # An object or a list is none, whatever its letters are.
        is_plain = all(re.fullmatch(r"[!-~]+", cell) and cell[0] not in "[{" for cell in cells)
        return (
            len(cells) == len(self.of[name]) > 0
            and is_plain
            and _most(cells, lambda cell: bool(re.search(r"\d", cell)))
        )

    def values(self, name: str) -> list[str]:
        """Return the single values of a column, also of one that holds lists of them."""
        return [value for cell in self.of[name] for value in passages.read_values(cell)]

    def are_grades(self, name: str) -> bool:
        """True if the column holds grades alone, of which there is at least one."""
        values = self.values(name)
        return bool(values) and all(map(is_grade, values))

    def list_ids(self, name: str, *, is_without_query: bool) -> bool:
        """True if the lists of a column hold ids of documents and no text."""
        found = []
        for cell in self.of[name]:
            value = parse_cell(cell)
            # The first of many tell what the others are.
            for one in value[:SHOWN_VALUES] if isinstance(value, list) else [value]:
                if isinstance(one, dict):
                    try:
                        found.append(passages.read_document(as_cell(one)).text is None)
                    except passages.NoPassageError:
                        return False
                else:
                    text = as_cell(one)
                    is_word = bool(text) and not re.search(r"\s", text)
                    found.append(is_word and (is_without_query or bool(re.fullmatch(r"[!-~]*\d[!-~]*", text))))
        return all(found) if found else is_without_query

    def hold_objects(self, name: str) -> bool:
        """True if cells are lists of objects, or an object of lists for one."""
        values = [parse_cell(cell) for cell in self.of[name]]
        rows = [passages.as_rows(value) if isinstance(value, dict) else value for value in values]
        lists = [some for value, some in zip(values, rows, strict=True) if isinstance(some, list) and some != [value]]
        return any(isinstance(one, dict) for some in lists for one in some[:SHOWN_VALUES])

    def hold_documents(self, name: str) -> bool:
        """True if cells of the column hold objects, in lists, that name documents; ids of anything else do not."""
        try:
            found = [one for cell in self.of[name] for one in passages.read_passages(cell)]
        except passages.NoPassageError:
            return False
        return self.hold_objects(name) and all(one.id or one.text for one in found)

    def are_unique(self, name: str) -> bool:
        """True if no two rows have the same value."""
        return len(set(self.of[name])) == len(self.of[name])

    def length(self, name: str) -> float:
        cells = self.of[name]
        return sum(map(len, cells)) / len(cells) if cells else 0.0


def _most(cells: Sequence[str], test: Callable[[str], bool]) -> bool:
    return bool(cells) and sum(map(test, cells)) >= 0.8 * len(cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def guess_fields(header: Sequence[str], rows: Rows, *, is_about_queries: bool) -> dict[str, str]:
    """Return what columns are: by names, and by first rows where these are unclear."""
    simple = {name: simplify(name) for name in header}
    cells = Cells(header, rows)
    found = name_fields(header)
    _tell_texts_from_ids(found, simple, cells)
    _find_grades(found, simple, cells)
    _find_lists(found, simple, cells)
    _find_topics(found, simple, is_about_queries=is_about_queries)
    _find_ids(found, simple, cells)
    fields = set(found.values())
    # A question in a table of documents, under a name that is not known.
    if "text" in fields and not fields & {"query", "query_id"}:
        free = {name: [cell.rstrip() for cell in cells.of[name]] for name in header if name not in found}
        asked = [name for name, texts in free.items() if _most(texts, lambda text: text.endswith(("?", "？")))]
        found |= {name: "query" for name in asked[:1]}
    return found


def _tell_texts_from_ids(found: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    for name, field in list(found.items()):
        as_id = _TEXT_OR_ID.get(simple[name], "")
        if as_id and as_id not in found.values() and cells.are_ids(name):
            found[name] = as_id
        elif field == "text" and cells.hold_objects(name):
            found[name] = "passages"
    # Judgments that name the documents, as OpenSearch's ratings of a query.
    for name, one in simple.items():
        if one in JUDGMENTS and found.get(name, "grade") == "grade" and cells.hold_documents(name):
            found[name] = "passages"
    texts = [name for name, field in found.items() if field == "text"]
    # A word in each row beside a text in each row is its id, whatever letters it has.
    if len(texts) == 2 and "doc_id" not in found.values():
        short, long = sorted(texts, key=cells.length)
        is_word = bool(cells.of[short]) and not any(re.search(r"\s", cell) for cell in cells.of[short])
        if simple[short] in _TEXT_OR_ID and is_word and cells.length(long) > 2 * cells.length(short):
            found[short] = "doc_id"
    ids = [name for name, field in found.items() if field == "doc_id"]
    # PyTerrier numbers documents beside their own ids.
    if "docno" in simple.values() and len(ids) > 1:
        for name in [name for name in ids if simple[name] != "docno"]:
            del found[name]
            ids.remove(name)
    # A passage's id beside its document's: the one that tells rows apart.
    if len(ids) > 1 and "text" in found.values() and any(map(cells.are_unique, ids)):
        for name in ids:
            if not cells.are_unique(name):
                del found[name]


def _find_grades(found: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    fields = set(found.values())
    # BEIR's qrels call the grade a score, and others that have no fourth column do so, too.
    is_beir = sorted(simple.values()) == ["corpus_id", "query_id", "score"]
    scored = [name for name, field in found.items() if field == "score" and simple[name] == "score"]
    if is_beir or (sorted(found.values()) == ["doc_id", "query_id", "score"] and len(simple) == 3):
        # Whole numbers up to 10, as grades are and scores hardly.
        small = re.compile(r"-?(?:\d|10)")
        for name in scored:
            if is_beir or (cells.of[name] and all(small.fullmatch(cell.strip()) for cell in cells.of[name])):
                found[name] = "grade"
        return
    for name in [name for name in simple if found.get(name) == "grade" and simple[name] in _GRADE_OR_SCORE]:
        values = cells.values(name)
        # Numbers alone, and one that is no whole number.
        if "score" not in fields and all(map(_is_number, values)) and not all(map(is_grade, values)):
            found[name] = "score"
    fields = set(found.values())
    if "grade" not in fields:
        assessed = [name for name, one in simple.items() if _ASSESSOR.fullmatch(one) and cells.are_grades(name)]
        others = [name for name, one in simple.items() if one in _GRADES_TOO and cells.are_grades(name)]
        if not others and fields & {"query", "query_id"}:
            # gold_label, or human_relevance: of several nobody knows which is meant.
            alike = [name for name, one in simple.items() if name not in found and _GRADE_OF.fullmatch(one)]
            alike = [name for name in alike if not _STATISTIC.fullmatch(simple[name])]
            others = alike if len(alike) == 1 and cells.are_grades(alike[0]) else []
        found |= dict.fromkeys(assessed if len(assessed) > 1 else others[:1], "grade")
        people = [name for name in list(simple)[2:] if cells.of[name]]
        if _is_book(list(simple)) and all(map(cells.are_grades, people)):
            found |= dict.fromkeys(list(simple)[2:] if people else (), "grade")
    if "grade" in found.values() and "assessor" not in found.values():
        people = [name for name, one in simple.items() if one in _PEOPLE and name not in found and cells.of[name]]
        found |= dict.fromkeys(people[:1], "assessor")
    # An answer with a label is a candidate, and none of reference.
    answer = next((name for name, one in simple.items() if one in ("answer", "response")), "")
    if answer and "grade" in found.values() and not set(found.values()) & ({"text", "doc_id"} | LISTS):
        found[answer] = "text"


def _find_lists(found: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    fields = set(found.values())
    is_without_query = "query_id" in fields and "query" not in fields
    for name, field in list(found.items()):
        if field in ("positive", "negative") and cells.list_ids(name, is_without_query=is_without_query):
            found[name] = f"{field}_id"
        elif field == "passages" and cells.of[name] and all(map(_is_number, cells.of[name])):
            del found[name]  # How many there are.
        elif field == "passages" and cells.of[name] and cells.list_ids(name, is_without_query=is_without_query):
            found[name] = "doc_id"
    sides = set(found.values()) & LISTS
    if sides == {"positive"}:
        # With a label the text may be either; a score beside it is its own.
        named = {"positive": "text"} if "grade" in found.values() else {"score": "positive_score"}
        found |= {name: named[field] for name, field in found.items() if field in named}
    if set(found.values()) & {"positive", "negative"}:
        for name, one in simple.items():
            # ms-swift's chats, TRL's preferences, and FlagEmbedding's prompt.
            if one in ("messages", "prompt") and "query" not in found.values():
                found[name] = "query"
            elif one == "prompt" and "instruction" not in found.values():
                found[name] = "instruction"


def _find_topics(found: dict[str, str], simple: Mapping[str, str], *, is_about_queries: bool) -> None:
    fields = set(found.values())
    # A rank is of a query; elsewhere it is one of many numbers.
    if not fields & {"query", "query_id"}:
        for name in [name for name, field in found.items() if field == "rank"]:
            del found[name]
    # Documents may have a column of topics: only a grade or a score makes a pair of a row.
    if "text" in fields and not fields & {"grade", "score", "rank", *LISTS}:
        for name in [name for name, one in simple.items() if one.startswith("topic") and found.get(name) == "query_id"]:
            if not is_about_queries and "doc_id" in fields:
                del found[name]
    # A file of queries may call their text simply "text", and TREC's topics call it their title.
    if "query" in fields or fields & {"doc_id", "grade", "score", *LISTS}:
        return
    called = "text" if "text" in simple.values() else "title" if "text" not in fields else ""
    is_topic = "query_id" in fields and not (called == "text" and "title" in fields)
    is_query = is_about_queries and (called == "title" or "title" not in fields)
    if called in simple.values() and (is_topic or is_query):
        found |= {name: "query" for name, one in simple.items() if one == called}


def _find_ids(found: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    ids = [name for name, one in simple.items() if one in IDS and name not in found]
    fields = set(found.values())
    if not ids or _TASK in simple.values():
        return
    # Beside both texts it is the row's, as databases number them.
    owner = (
        "" if {"text", "query"} <= fields else "doc_id" if "text" in fields else "query_id" if "query" in fields else ""
    )
    if not owner or owner in fields:
        return
    if owner == "query_id":
        texts = next(name for name, field in found.items() if field == "query")
        values = dict(zip(cells.of[ids[0]], cells.of[texts], strict=False))
        # One query under several ids: these are numbers of rows.
        if LISTS & fields and len(set(values.values())) < len(values):
            return
    found[ids[0]] = owner


def likely_header(field: str, header: Sequence[str], fields: Mapping[str, str], rows: Rows) -> str:
    """Return the header of the column that most likely is a field, of those that are none: a text is long. Or ""."""
    cells = Cells(header, rows)
    other = ("title",) if field == "text" else ()
    free = [name for name in header if fields[name] in (METADATA, IGNORED, *other) and cells.of[name]]
    if field.endswith("_id"):
        free = [name for name in free if cells.are_ids(name)] or free
        return free[0] if free else ""
    return max(free, key=cells.length, default="")


def name_column(header: str) -> str:
    """Return a column as a sentence names it."""
    return f'"{header}"' if header else _("its column")


def find_problem(kind: str, header: Sequence[str], fields: Mapping[str, str], rows: Rows) -> str:
    """Return why a table cannot be imported as its columns say, and what helps."""
    has = set(fields.values())
    cells = Cells(header, rows)
    rated = next((name for field in _RATED for name in header if fields[name] == field), "")
    # A list of documents is of a query, unless it holds their texts.
    ids = [name for name in header if fields[name] == "doc_id" and cells.of[name]]
    lists = (name for name in ids if all(isinstance(parse_cell(cell), list) for cell in cells.of[name]))
    rated = rated or next(lists, "")
    for name in header if not has & {"grade", "assessor"} else ():
        if (
            fields[name] == METADATA
            and simplify(name) in _JUDGED
            and any(isinstance(value := parse_cell(cell), list | dict) and value for cell in cells.of[name])
        ):
            said = _(
                '"%(header)s" contains judgments that cannot be read: %(value)s. Write each as {"annotator", "label"}, '
                'or map the column to "ignore"'
            )
            return said % {"header": name, "value": cells.of[name][0][:60]}
    if kind not in ("", "queries", "documents") or not rated:
        return "" if kind else _("say what its columns are")
    has_query = bool(has & {"query", "query_id"})
    missing = "text" if has_query else "query"
    likely = likely_header(missing, header, fields, rows)
    if not kind and likely and cells.are_ids(likely):
        missing = "doc_id" if has_query else "query_id"
    said = (
        _('No column is the document that "%(rated)s" is about: map %(header)s to "%(field)s"')
        if has_query
        else _('No column is the query that "%(rated)s" is about: map %(header)s to "%(field)s"')
    )
    problem = said % {"rated": rated, "header": name_column(likely), "field": missing}
    if not kind or fields[rated] not in ("grade", "score", "rank"):
        return problem
    other = _('%(problem)s, or map "%(rated)s" to "metadata" to keep it as it is')
    return other % {"problem": problem, "rated": rated}


def find_unused(
    kind: str, header: Sequence[str], fields: Mapping[str, str], parts: Collection[str], rows: Rows
) -> dict[str, str]:
    """Return why columns are not read, by header, of a table read for `parts`."""
    read = set().union(*(_READ[part] for part in parts))
    # A text is read for its own sake, or where it stands for the id.
    if "queries" not in parts and "query_id" in fields.values():
        read -= {"query"}
    if "documents" not in parts and {"doc_id", "positive_id", "negative_id"} & set(fields.values()):
        read -= {"title", "text", "positive", "negative", "passages"}
    if set(fields.values()) & LISTS and "passages" not in fields.values():
        read -= {"grade", "score"}
    is_of_texts = bool({"documents", "queries"} & set(parts))
    # Each row may be a pair although only its queries are asked for: then nobody knows whose a column is.
    are_pairs = kind in ("all", "queries-pairs", "documents-pairs")
    found = {}
    for place, name in enumerate(header):
        field = fields[name]
        if field == METADATA and are_pairs:
            found[name] = _("each row is a pair, and nothing says whether this is of the query or of the document")
        elif field == METADATA and not is_of_texts:
            found[name] = _("it is neither query, document, grade nor score")
        elif field == IGNORED:
            is_unnamed = name == f"column {place + 1}"
            found[name] = _("it has no name") if is_unnamed else _("it is left out as chosen")
        elif field == "rank" and "score" in fields.values() and "runs" in parts:
            found[name] = _("the scores decide")
        elif field != METADATA and field not in read:
            found[name] = _("the file is read for its %(parts)s") % {"parts": ", ".join(sorted(parts))}
        elif field in ("positive", "negative", "passages"):
            for key in passages.unread_keys(row[place] for row in rows if place < len(row)):
                found[f"{name}.{key}"] = _("it is neither id, title, text, label nor score of a document")
    return found
