"""The meaning of the columns of a table, by their names and the values in their first rows. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

from django.utils.translation import gettext as _

from corpus.errors import BadOption
from corpus.formats import passages
from corpus.formats.cell_values import as_cell, parse_cell
from corpus.formats.files import MAX_COLUMNS
from corpus.formats.grade_values import is_grade
from corpus.formats.passages import NoPassageError, read_passages
from corpus.formats.tool_exports import JUDGMENTS

# The fields that a column can be, with their headers, in lower case and with "_" for other characters.
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
METADATA, IGNORED = "metadata", "ignore"  # Columns that are no field: kept with the text, or left out.
EVERY_FIELD = (*FIELDS, METADATA, IGNORED)
# Several documents of a row, and their scores: in a list, or in several columns such as negative_1, negative_2.
LISTS = frozenset(
    {"positive", "negative", "passages", "positive_id", "negative_id", "positive_score", "negative_score"}
)
IDS = ("id", "identifier", "key")  # Of the query or of the document, depending on the other columns.
SHOWN_VALUES = 1_000  # Values of a list in a cell that are inspected.
_RATED = ("grade", "score", "positive", "negative", "passages", "positive_id", "negative_id")
_JUDGED = ("annotations", "judgments", "judgements", "ratings", "assessments")  # Lists of judgments by assessors.
_TASK = "annotation_id"  # The column that identifies Label Studio's tables, whose column "id" is the task's.
_FIELD_OF = {header: field for field, headers in HEADERS.items() for header in headers.split()}
# Headers that may mean a text or its id, or a grade or a teacher's score, depending on the values.
_TEXT_OR_ID = {"query": "query_id", "search": "query_id", "doc": "doc_id", "document": "doc_id", "passage": "doc_id"}
_GRADE_OR_SCORE = ("label", "labels", "relevance", "relevance_score", "relevance_label", "score")
_GRADES_TOO = ("relevant", "is_relevant", "relevancy", "is_selected", "positive")  # Grades if no other column is.
# Assessors, if no other column is and there are grades; without grades they may be authors or readers of a text.
_PEOPLE = {"annotator_id", "rater_id", "assessor_id", "worker", "worker_id", "annotator_name", "user", "user_id"}
_PEOPLE |= {"user_name", "username", "labeler", "labeller", "labeled_by", "reviewer", "judge", "completed_by"}
# Statistics of several grades, which are no grades.
_STATISTIC = re.compile(r".*_(?:variance|var|std|stdev|count|confidence|reason|comment|id)")
# Prefixes of crowdsourcing forms: "INPUT:query", "Answer.relevance".
_PREFIX = re.compile(r"(?:input|output|answer|data|fields?|assignment|golden)[:.](?=.)", re.IGNORECASE)
_ASSESSOR = re.compile(
    r"(?:annotator|rater|assessor|coder|expert|person|labell?er|reviewer)_?(?:\d+|[a-z])(?:_(?:label|grade|rating))?"
    r"|(?:label|grade|rating|relevance|judge?ment)_(?:\d+|[a-z])"
)
_GRADE_OF = re.compile(
    r"(?:label|grade|relevance|rating|judge?ment)_\w+|\w+_(?:label|grade|relevance|rating|judge?ment)"
)
# The fields that are read, by the content for which a file is read (detection.HOLDS).
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


def parse_columns(options: Iterable[str]) -> dict[str, str]:
    """Return fields by header, from options HEADER=FIELD. Raises BadOption for other options."""
    pairs = [(option, *option.rpartition("=")[::2]) for option in options]
    for option, header, _field in pairs:
        if not header:
            raise BadOption("column", f"Write HEADER=FIELD, for example 'Search term=query', not {option}.")
    return {header: field for _option, header, field in pairs}


def simplify(header: str) -> str:
    """Return a header in lower case with "_" for other characters; `queryId` becomes `query_id`."""
    name = _PREFIX.sub("", header, count=1)
    return re.sub(r"[^0-9a-z]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")


def name_fields(header: Iterable[str]) -> dict[str, str]:
    """Return the fields of the headers that are clear from their names alone."""
    fields = {}
    for name in islice(header, MAX_COLUMNS):
        simple = simplify(name)
        # negative_1, negative_2: lists in several columns.
        field = _FIELD_OF.get(simple) or _FIELD_OF.get(re.sub(r"_?\d+$", "", simple), "")
        if field and (simple in _FIELD_OF or field in LISTS):
            fields[name] = field
    return fields


def name_pair(header: Sequence[str]) -> bool:
    """Return whether the headers name a query, a document, and a grade, a score or a rank."""
    if len(header) > MAX_COLUMNS:
        return False
    fields = set(name_fields(header).values())
    if any(simplify(name) in _GRADES_TOO for name in header):
        fields.add("grade")
    sides = ({"query_id", "query"}, {"doc_id", "text"}, {"grade", "score", "rank"})
    return all(fields & side for side in sides)


def name_assessors(header: Sequence[str], given_fields: Mapping[str, str], *, of: Sequence[str] = ()) -> bool:
    """Return whether each of these columns has the grades of one assessor.

    So it is by its name, by the given fields, or in a Quepid book, whose header is `of`.
    """
    return _is_book(of) or all(
        _ASSESSOR.fullmatch(simplify(name)) or given_fields.get(name) == "grade" for name in header
    )


def _is_book(header: Sequence[str]) -> bool:
    """Return whether a table is a Quepid book: query, docid, and a column for each person, with any name."""
    return [*map(simplify, header[:2])] == ["query", "docid"] and len(header) > 2


class Cells:
    """The cells of the first rows, by header, without empty ones."""

    def __init__(self, header: Sequence[str], rows: Rows) -> None:
        self.of = {
            name: [row[position] for row in rows if position < len(row) and row[position].strip()]
            for position, name in enumerate(header)
        }

    def are_ids(self, name: str) -> bool:
        """Return whether the column contains ids: without blanks, and unlike words mostly with digits."""
        cells = [cell for cell in self.of[name] if len(cell) < 256]
        # Objects and lists are no ids.
        is_plain = all(re.fullmatch(r"[!-~]+", cell) and cell[0] not in "[{" for cell in cells)
        return (
            len(cells) == len(self.of[name]) > 0
            and is_plain
            and _most(cells, lambda cell: bool(re.search(r"\d", cell)))
        )

    def values(self, name: str) -> list[str]:
        """Return the values of a column, including those in lists."""
        return [value for cell in self.of[name] for value in passages.read_values(cell)]

    def are_grades(self, name: str) -> bool:
        """Return whether the column contains at least one value, and only grades."""
        values = self.values(name)
        return bool(values) and all(map(is_grade, values))

    def list_ids(self, name: str, *, is_without_query: bool) -> bool:
        """Return whether the lists of a column contain ids of documents and no texts."""
        are_ids = []
        for cell in self.of[name]:
            value = parse_cell(cell)
            for element in value[:SHOWN_VALUES] if isinstance(value, list) else [value]:
                if isinstance(element, dict):
                    try:
                        are_ids.append(passages.read_document(as_cell(element)).text is None)
                    except passages.NoPassageError:
                        return False
                else:
                    text = as_cell(element)
                    is_word = bool(text) and not re.search(r"\s", text)
                    are_ids.append(is_word and (is_without_query or bool(re.fullmatch(r"[!-~]*\d[!-~]*", text))))
        return all(are_ids) if are_ids else is_without_query

    def contain_objects(self, name: str) -> bool:
        """Return whether cells are lists of objects, or an object of lists."""
        values = [parse_cell(cell) for cell in self.of[name]]
        rows = [passages.as_rows(value) if isinstance(value, dict) else value for value in values]
        lists = [row for value, row in zip(values, rows, strict=True) if isinstance(row, list) and row != [value]]
        return any(isinstance(element, dict) for row in lists for element in row[:SHOWN_VALUES])

    def contain_documents(self, name: str) -> bool:
        """Return whether cells are lists of objects that name documents."""
        try:
            documents = [passage for cell in self.of[name] for passage in passages.read_passages(cell)]
        except passages.NoPassageError:
            return False
        return self.contain_objects(name) and all(passage.id or passage.text for passage in documents)

    def are_unique(self, name: str) -> bool:
        """Return whether no two rows have the same value."""
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
    """Return the fields of columns, by their names, and by the first rows where names are ambiguous."""
    simple = {name: simplify(name) for name in header}
    cells = Cells(header, rows)
    column_fields = name_fields(header)
    _tell_texts_from_ids(column_fields, simple, cells)
    _find_grades(column_fields, simple, cells)
    _find_lists(column_fields, simple, cells)
    _find_topics(column_fields, simple, is_about_queries=is_about_queries)
    _find_ids(column_fields, simple, cells)
    fields = set(column_fields.values())
    # A column of questions in a table of documents, under an unknown name.
    if "text" in fields and not fields & {"query", "query_id"}:
        free = {name: [cell.rstrip() for cell in cells.of[name]] for name in header if name not in column_fields}
        question_columns = [
            name for name, texts in free.items() if _most(texts, lambda text: text.endswith(("?", "？")))
        ]
        column_fields |= {name: "query" for name in question_columns[:1]}
    return column_fields


def _tell_texts_from_ids(column_fields: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    """Correct `column_fields` where texts, ids and lists of documents are confused."""
    for name, field in list(column_fields.items()):
        as_id = _TEXT_OR_ID.get(simple[name], "")
        if as_id and as_id not in column_fields.values() and cells.are_ids(name):
            column_fields[name] = as_id
        elif field == "text" and cells.contain_objects(name):
            column_fields[name] = "passages"
    # Judgments that name the documents, such as OpenSearch's ratings of a query.
    for name, simple_name in simple.items():
        if simple_name in JUDGMENTS and column_fields.get(name, "grade") == "grade" and cells.contain_documents(name):
            column_fields[name] = "passages"
    texts = [name for name, field in column_fields.items() if field == "text"]
    # A single word in each row beside a text is the id of the text.
    if len(texts) == 2 and "doc_id" not in column_fields.values():
        short, long = sorted(texts, key=cells.length)
        is_word = bool(cells.of[short]) and not any(re.search(r"\s", cell) for cell in cells.of[short])
        if simple[short] in _TEXT_OR_ID and is_word and cells.length(long) > 2 * cells.length(short):
            column_fields[short] = "doc_id"
    ids = [name for name, field in column_fields.items() if field == "doc_id"]
    # PyTerrier has numbers of documents beside their ids.
    if "docno" in simple.values() and len(ids) > 1:
        for name in [name for name in ids if simple[name] != "docno"]:
            del column_fields[name]
            ids.remove(name)
    # Of a passage's id and its document's id, the one that is unique.
    if len(ids) > 1 and "text" in column_fields.values() and any(map(cells.are_unique, ids)):
        for name in ids:
            if not cells.are_unique(name):
                del column_fields[name]


def _find_grades(column_fields: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    """Find the columns of grades, scores and assessors."""
    fields = set(column_fields.values())
    # BEIR's qrels call the grade a score, and so do others without a fourth column.
    is_beir = sorted(simple.values()) == ["corpus_id", "query_id", "score"]
    scored = [name for name, field in column_fields.items() if field == "score" and simple[name] == "score"]
    if is_beir or (sorted(column_fields.values()) == ["doc_id", "query_id", "score"] and len(simple) == 3):
        # Grades are whole numbers up to 10, and scores hardly ever.
        small = re.compile(r"-?(?:\d|10)")
        for name in scored:
            if is_beir or (cells.of[name] and all(small.fullmatch(cell.strip()) for cell in cells.of[name])):
                column_fields[name] = "grade"
        return
    for name in [name for name in simple if column_fields.get(name) == "grade" and simple[name] in _GRADE_OR_SCORE]:
        values = cells.values(name)
        # Scores are numbers of which at least one is no whole number.
        if "score" not in fields and all(map(_is_number, values)) and not all(map(is_grade, values)):
            column_fields[name] = "score"
    fields = set(column_fields.values())
    if "grade" not in fields:
        assessed = [
            name for name, simple_name in simple.items() if _ASSESSOR.fullmatch(simple_name) and cells.are_grades(name)
        ]
        others = [name for name, simple_name in simple.items() if simple_name in _GRADES_TOO and cells.are_grades(name)]
        if not others and fields & {"query", "query_id"}:
            # One column such as gold_label or human_relevance; several would be ambiguous.
            similar = [
                name
                for name, simple_name in simple.items()
                if name not in column_fields and _GRADE_OF.fullmatch(simple_name)
            ]
            similar = [name for name in similar if not _STATISTIC.fullmatch(simple[name])]
            others = similar if len(similar) == 1 and cells.are_grades(similar[0]) else []
        column_fields |= dict.fromkeys(assessed if len(assessed) > 1 else others[:1], "grade")
        people = [name for name in list(simple)[2:] if cells.of[name]]
        if _is_book(list(simple)) and all(map(cells.are_grades, people)):
            column_fields |= dict.fromkeys(list(simple)[2:] if people else (), "grade")
    if "grade" in column_fields.values() and "assessor" not in column_fields.values():
        people = [
            name
            for name, simple_name in simple.items()
            if simple_name in _PEOPLE and name not in column_fields and cells.of[name]
        ]
        column_fields |= dict.fromkeys(people[:1], "assessor")
    # An answer with a label is a candidate document, and not a reference answer.
    answer = next((name for name, simple_name in simple.items() if simple_name in ("answer", "response")), "")
    if answer and "grade" in column_fields.values() and not set(column_fields.values()) & ({"text", "doc_id"} | LISTS):
        column_fields[answer] = "text"


def _find_lists(column_fields: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    """Tell lists of ids from lists of texts, and find the query and instruction beside them."""
    fields = set(column_fields.values())
    is_without_query = "query_id" in fields and "query" not in fields
    for name, field in list(column_fields.items()):
        if field in ("positive", "negative") and cells.list_ids(name, is_without_query=is_without_query):
            column_fields[name] = f"{field}_id"
        elif field == "passages" and cells.of[name] and all(map(_is_number, cells.of[name])):
            # The number of passages.
            del column_fields[name]
        elif field == "passages" and cells.of[name] and cells.list_ids(name, is_without_query=is_without_query):
            column_fields[name] = "doc_id"
    sides = set(column_fields.values()) & LISTS
    if sides == {"positive"}:
        # With a label the text may be positive or negative; without one, the score is that of the positive.
        renamed = {"positive": "text"} if "grade" in column_fields.values() else {"score": "positive_score"}
        column_fields |= {name: renamed[field] for name, field in column_fields.items() if field in renamed}
    if set(column_fields.values()) & {"positive", "negative"}:
        for name, simple_name in simple.items():
            # The chats of ms-swift, the preferences of TRL, and the prompt of FlagEmbedding.
            if simple_name in ("messages", "prompt") and "query" not in column_fields.values():
                column_fields[name] = "query"
            elif simple_name == "prompt" and "instruction" not in column_fields.values():
                column_fields[name] = "instruction"


def _find_topics(column_fields: dict[str, str], simple: Mapping[str, str], *, is_about_queries: bool) -> None:
    """Find the texts of queries, and drop ranks and topics that do not belong to queries."""
    fields = set(column_fields.values())
    # A rank belongs to a query; without one it is just a number.
    if not fields & {"query", "query_id"}:
        for name in [name for name, field in column_fields.items() if field == "rank"]:
            del column_fields[name]
    # Documents may have a column of topics: only with a grade or a score is a row a pair.
    if "text" in fields and not fields & {"grade", "score", "rank", *LISTS}:
        for name in [
            name
            for name, simple_name in simple.items()
            if simple_name.startswith("topic") and column_fields.get(name) == "query_id"
        ]:
            if not is_about_queries and "doc_id" in fields:
                del column_fields[name]
    # A file of queries may call their text "text", and TREC topics call it "title".
    if "query" in fields or fields & {"doc_id", "grade", "score", *LISTS}:
        return
    text_name = "text" if "text" in simple.values() else "title" if "text" not in fields else ""
    is_topic = "query_id" in fields and not (text_name == "text" and "title" in fields)
    is_query = is_about_queries and (text_name == "title" or "title" not in fields)
    if text_name in simple.values() and (is_topic or is_query):
        column_fields |= {name: "query" for name, simple_name in simple.items() if simple_name == text_name}


def _find_ids(column_fields: dict[str, str], simple: Mapping[str, str], cells: Cells) -> None:
    """Find out whether a column "id" is that of the document or of the query."""
    ids = [name for name, simple_name in simple.items() if simple_name in IDS and name not in column_fields]
    fields = set(column_fields.values())
    if not ids or _TASK in simple.values():
        return
    # Beside both texts it is the number of the row.
    owner = (
        "" if {"text", "query"} <= fields else "doc_id" if "text" in fields else "query_id" if "query" in fields else ""
    )
    if not owner or owner in fields:
        return
    if owner == "query_id":
        texts = next(name for name, field in column_fields.items() if field == "query")
        values = dict(zip(cells.of[ids[0]], cells.of[texts], strict=False))
        # If one query has several ids, they are numbers of rows.
        if LISTS & fields and len(set(values.values())) < len(values):
            return
    column_fields[ids[0]] = owner


def likely_header(field: str, header: Sequence[str], fields: Mapping[str, str], rows: Rows) -> str:
    """Return the header of the column without a field that most likely is `field`; "" if there is none."""
    cells = Cells(header, rows)
    other = ("title",) if field == "text" else ()
    unassigned = [name for name in header if fields[name] in (METADATA, IGNORED, *other) and cells.of[name]]
    if field.endswith("_id"):
        unassigned = [name for name in unassigned if cells.are_ids(name)] or unassigned
        return unassigned[0] if unassigned else ""
    # The longest texts.
    return max(unassigned, key=cells.length, default="")


def name_column(header: str) -> str:
    """Return the name of a column for a message."""
    return f'"{header}"' if header else _("its column")


def find_problem(kind: str, header: Sequence[str], fields: Mapping[str, str], rows: Rows) -> str:
    """Return why a table with these fields cannot be imported, and what helps; "" if it can."""
    has = set(fields.values())
    cells = Cells(header, rows)
    rated = next((name for field in _RATED for name in header if fields[name] == field), "")
    # A list of document ids belongs to a query.
    ids = [name for name in header if fields[name] == "doc_id" and cells.of[name]]
    lists = (name for name in ids if all(isinstance(parse_cell(cell), list) for cell in cells.of[name]))
    rated = rated or next(lists, "")
    for name in header if not has & {"grade", "assessor"} else ():
        if (
            fields[name] == METADATA
            and simplify(name) in _JUDGED
            and any(isinstance(value := parse_cell(cell), list | dict) and value for cell in cells.of[name])
        ):
            message = _(
                '"%(header)s" contains judgments that cannot be read: %(value)s. Write each as {"annotator", "label"}, '
                'or map the column to "ignore"'
            )
            return message % {"header": name, "value": cells.of[name][0][:60]}
    if kind not in ("", "queries", "documents") or not rated:
        return "" if kind else _("say what its columns are")
    has_query = bool(has & {"query", "query_id"})
    missing = "text" if has_query else "query"
    likely = likely_header(missing, header, fields, rows)
    if not kind and likely and cells.are_ids(likely):
        missing = "doc_id" if has_query else "query_id"
    message = (
        _('No column is the document that "%(rated)s" is about: map %(header)s to "%(field)s"')
        if has_query
        else _('No column is the query that "%(rated)s" is about: map %(header)s to "%(field)s"')
    )
    problem = message % {"rated": rated, "header": name_column(likely), "field": missing}
    if not kind or fields[rated] not in ("grade", "score", "rank"):
        return problem
    other = _('%(problem)s, or map "%(rated)s" to "metadata" to keep it as it is')
    return other % {"problem": problem, "rated": rated}


def find_unused(
    kind: str, header: Sequence[str], fields: Mapping[str, str], parts: Collection[str], rows: Rows
) -> dict[str, str]:
    """Return the columns of a table that are not read, by header, with the reasons; `parts` are read from it."""
    read_fields = set().union(*(_READ[part] for part in parts))
    # A text is read as a part, or where it replaces a missing id.
    if "queries" not in parts and "query_id" in fields.values():
        read_fields -= {"query"}
    if "documents" not in parts and {"doc_id", "positive_id", "negative_id"} & set(fields.values()):
        read_fields -= {"title", "text", "positive", "negative", "passages"}
    if set(fields.values()) & LISTS and "passages" not in fields.values():
        read_fields -= {"grade", "score"}
    has_texts = bool({"documents", "queries"} & set(parts))
    # In rows that are pairs, metadata may belong to the query or to the document.
    are_pairs = kind in ("all", "queries-pairs", "documents-pairs")
    reasons = {}
    for position, name in enumerate(header):
        field = fields[name]
        if field == METADATA and are_pairs:
            reasons[name] = _("each row is a pair, and nothing says whether this is of the query or of the document")
        elif field == METADATA and not has_texts:
            reasons[name] = _("it is neither query, document, grade nor score")
        elif field == IGNORED:
            is_unnamed = name == f"column {position + 1}"
            reasons[name] = _("it has no name") if is_unnamed else _("it is left out as chosen")
        elif field == "rank" and "score" in fields.values() and "runs" in parts:
            reasons[name] = _("the scores decide")
        elif field != METADATA and field not in read_fields:
            reasons[name] = _("the file is read for its %(parts)s") % {"parts": ", ".join(sorted(parts))}
        elif field in ("positive", "negative", "passages"):
            ignored_keys: dict[str, None] = {}
            for cell in (row[position] for row in rows if position < len(row)):
                try:
                    ignored_keys.update(dict.fromkeys(key for passage in read_passages(cell) for key in passage.unread))
                except NoPassageError:
                    continue
            for key in ignored_keys:
                reasons[f"{name}.{key}"] = _("it is neither id, title, text, label nor score of a document")
    return reasons
