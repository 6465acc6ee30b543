"""Objects with several judgments, as in exports of Label Studio, Argilla and others, as flat rows. Pure.

A row has the fields of the task or record, `annotator`, and each answer under the name of its
question. A record without judgments is one row without an annotator. An object that contains a list
of rows is replaced by the rows.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from corpus.formats import passages, search_tools
from corpus.formats.grade_values import is_grade

ANNOTATOR = "annotator"
# Keys of lists of judgments, each with person and grade, or of an object of grades by person.
JUDGMENTS = {"annotations", "judgments", "judgements", "ratings", "labels", "grades", "votes", "assessments", "reviews"}
JUDGMENTS |= {"responses", "evaluations", "annotator_labels", "relevance", "relevance_judgments", "relevant_docs"}
_PEOPLE = (
    "annotator annotator_id rater rater_id assessor assessor_id worker worker_id user user_id username reviewer "
    "reviewer_id coder labeler labeller judge person completed_by created_by email name"
)
_GRADES = "label grade rating relevance judgment judgement relevance_label labels vote value answer score"
# Keys of lists of rows in an object around them.
_AROUND = {"data", "rows", "records", "items", "results", "examples", "instances", "entries"}
_AROUND |= {"requests", "topics", "questions", "queries", "documents", "corpus", "collection", "passages", "qrels"}
_AROUND |= {"judgments", "annotations", "tasks"}
_CONTROLS = ("choices", "rating", "number")  # Controls of Label Studio whose value can be a grade.
_FLAT = ".responses"


class FlatRow(NamedTuple):
    """A judgment, or a record without one. `answers`: columns that a person filled."""

    values: dict[str, Any]
    answers: tuple[str, ...]


def flatten(row: dict[str, Any]) -> list[FlatRow] | None:
    """Return the judgments of an object with its texts; None for an object that is itself a row."""
    if (judged_queries := search_tools.read_ratings(row)) is not None:
        return [FlatRow(judged_query, ()) for judged_query in judged_queries]
    judgments: list[tuple[str, dict[str, Any]]]
    data, annotations, responses = row.get("data"), row.get("annotations"), row.get("responses")
    # A task of Label Studio, a record of Argilla, or a flat record of Argilla's data sets.
    if isinstance(data, dict) and (isinstance(annotations, list) or row.keys() == {"data"}):
        texts, judgments = dict(data), list(_of_task(annotations or []))
    elif isinstance(row.get("fields"), dict) and isinstance(responses, dict | list):
        metadata = row.get("metadata")
        texts = {**row["fields"], **(metadata if isinstance(metadata, dict) else {})}
        judgments = list(_of_record(responses))
    elif any(name.endswith(_FLAT) and f"{name}.users" in row for name in row):
        texts = {name: value for name, value in row.items() if "." not in name and name not in ("id", "_server_id")}
        judgments = list(_of_flat_record(row))
    elif not any(isinstance(value, list | dict) for value in row.values()):
        return None
    elif inner_rows := _rows_of(row):
        return [flat for inner_row in inner_rows for flat in flatten(inner_row) or [FlatRow(inner_row, ())]]
    elif name := next((name for name, value in row.items() if _are_judgments(row, name, value)), ""):
        return _of_list(row, name)
    else:
        return None
    rows = []
    for annotator, answers in judgments:
        # A question may have the name of a field: its answer must not replace the text that was judged.
        answer_columns = {f"{name} (answer)" if name in texts else name: value for name, value in answers.items()}
        rows.append(FlatRow({**texts, ANNOTATOR: annotator, **answer_columns}, tuple(answer_columns)))
    return rows or [FlatRow({**texts, ANNOTATOR: ""}, ())]


def _rows_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows in an object around them; [] for an object that is itself a row."""
    if isinstance(row.get("paragraphs"), list):
        return list(_of_article(row))
    lists_of_rows: dict[str, list[dict[str, Any]]] = {
        name: value
        for name, value in row.items()
        if passages.simplify(name) in _AROUND
        and isinstance(value, list)
        and value
        and all(isinstance(element, dict) for element in value)
    }
    other_values = {name: value for name, value in row.items() if name not in lists_of_rows}
    if len(lists_of_rows) != 1 or passages.find_key(other_values, f"{passages.DOCUMENT} {passages.QUERY}"):
        return []
    return next(iter(lists_of_rows.values()))


def _of_article(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the questions of a SQuAD article, each with its paragraph."""
    for paragraph in row["paragraphs"]:
        questions = paragraph.get("qas") if isinstance(paragraph, dict) else None
        for question in questions if isinstance(questions, list) else []:
            if isinstance(question, dict):
                yield {
                    "title": row.get("title"),
                    "context": paragraph.get("context"),
                    "question_id": question.get("id"),
                    **{name: value for name, value in question.items() if name != "id"},
                }


def _are_judgments(row: dict[str, Any], name: str, value: Any) -> bool:
    """Return whether a value contains judgments of the row's document, each with its person."""
    if not isinstance(value, list | dict) or passages.simplify(name) not in JUDGMENTS:
        return False
    if not passages.find_key(row, passages.DOCUMENT):
        return False
    if isinstance(value, dict):
        return bool(value) and all(is_grade(str(grade)) for grade in value.values())
    # An empty list means that the row has no judgments yet.
    return (bool(value) or name in ("annotations", "judgments", "ratings")) and all(
        isinstance(judgment, dict) and passages.find_key(judgment, _PEOPLE) and passages.find_key(judgment, _GRADES)
        for judgment in value
    )


def _of_list(row: dict[str, Any], name: str) -> list[FlatRow]:
    """Return the judgments under a key of a row; an object of grades has people as keys."""
    texts = {key: value for key, value in row.items() if key != name}
    judgments = row[name]
    if isinstance(judgments, dict):
        judgments = [{ANNOTATOR: person, "grade": grade} for person, grade in judgments.items()]
    answer = "grade (answer)" if "grade" in texts else "grade"
    rows = []
    for judgment in judgments:
        person_key, grade_key = passages.find_key(judgment, _PEOPLE), passages.find_key(judgment, _GRADES)
        other_values = {f"{name}.{key}": value for key, value in judgment.items() if key not in (person_key, grade_key)}
        judged_values = {ANNOTATOR: _name_person(judgment[person_key]), answer: judgment[grade_key]}
        rows.append(FlatRow({**texts, **judged_values, **other_values}, (answer,)))
    return rows or [FlatRow({**texts, ANNOTATOR: ""}, ())]


def _of_task(annotations: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for annotation in annotations:
        # In Label Studio a skipped task is a cancelled annotation.
        if not isinstance(annotation, dict) or annotation.get("was_cancelled"):
            continue
        answers = {}
        for result in annotation.get("result") or []:
            value = result.get("value") if isinstance(result, dict) else None
            control = next((name for name in _CONTROLS if isinstance(value, dict) and name in value), "")
            if control:
                choice = value[control]  # type: ignore[index]  # A dictionary, as tested above.
                # Choices are a list even where only one can be selected.
                answer = choice[0] if isinstance(choice, list) and len(choice) == 1 else choice
                answers[str(result.get("from_name") or control)] = answer
        if answers:
            yield _name_person(annotation.get("completed_by")), answers


def _name_person(person: Any) -> str:
    """Return the name of an annotator, who is a number, or an object with an email address or a name."""
    if isinstance(person, dict):
        person = next((person[key] for key in ("email", "username", "id") if person.get(key)), "")
    return "" if person is None else str(person)


def _of_record(responses: dict[str, Any] | list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield answers by person, from Argilla 2 (lists by question) or Argilla 1 (a list of people)."""
    answers_by_person: dict[str, dict[str, Any]] = {}
    if isinstance(responses, dict):
        # Answers are grouped by question, so those of a person come from several lists.
        for question, question_responses in responses.items():
            for response in question_responses if isinstance(question_responses, list) else []:
                if isinstance(response, dict) and response.get("status", "submitted") in ("submitted", None):
                    answers = answers_by_person.setdefault(_name_person(response.get("user_id")), {})
                    answers[question] = response.get("value")
    else:
        for response in responses:
            if not isinstance(response, dict) or response.get("status") != "submitted":
                continue
            if isinstance(response.get("values"), dict):
                answers = answers_by_person.setdefault(_name_person(response.get("user_id")), {})
                for question, answer in response["values"].items():
                    if isinstance(answer, dict):
                        answers[question] = answer.get("value")
    yield from answers_by_person.items()


def _of_flat_record(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    answers_by_person: dict[str, dict[str, Any]] = {}
    for name in [column for column in row if column.endswith(_FLAT)]:
        values, users = row[name] or [], row.get(f"{name}.users") or []
        # Without a column of states all answers count as submitted.
        states = row.get(f"{name}.status") or ["submitted"] * len(values)
        for value, user, state in zip(values, users, states, strict=False):
            if state == "submitted":
                answers_by_person.setdefault(_name_person(user), {})[name.removesuffix(_FLAT)] = value
    yield from answers_by_person.items()
