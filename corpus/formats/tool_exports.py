"""Objects that hold several judgments, as exports of Label Studio, Argilla and others do, as flat rows. Pure.

A row has the fields of the task or record, `annotator`, and each answer by the name of its
question. A record that nobody judged is one row without an annotator. Of an object around a list of
rows, as programs write them, the rows count.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from corpus.formats import passages
from corpus.formats.grade_values import is_grade

ANNOTATOR = "annotator"
# Keys of lists of judgments, each with who gave it and the grade; or of an object of grades by who gave them.
JUDGMENTS = {"annotations", "judgments", "judgements", "ratings", "labels", "grades", "votes", "assessments", "reviews"}
JUDGMENTS |= {"responses", "evaluations", "annotator_labels", "relevance", "relevance_judgments", "relevant_docs"}
_PEOPLE = (
    "annotator annotator_id rater rater_id assessor assessor_id worker worker_id user user_id username reviewer "
    "reviewer_id coder labeler labeller judge person completed_by created_by email name"
)
_GRADES = "label grade rating relevance judgment judgement relevance_label labels vote value answer score"
# Keys of lists of rows, in an object around them.
_AROUND = {"data", "rows", "records", "items", "results", "examples", "instances", "entries", "judgment_ratings"}
_AROUND |= {"requests", "topics", "questions", "queries", "documents", "corpus", "collection", "passages", "qrels"}
_AROUND |= {"judgments", "annotations", "tasks"}
_CONTROLS = ("choices", "rating", "number")  # What of Label Studio's controls can hold a grade.
_FLAT = ".responses"


class FlatRow(NamedTuple):
    """A judgment, or a record without one. `answers`: columns that a person filled."""

    values: dict[str, Any]
    answers: tuple[str, ...]


def flatten(row: dict[str, Any]) -> list[FlatRow] | None:
    """Return an object's judgments with texts; None for an object that is a row."""
    judged: list[tuple[str, dict[str, Any]]]
    data, annotations, answered = row.get("data"), row.get("annotations"), row.get("responses")
    # A task of Label Studio, a record of Argilla, or a flat record of Argilla's data sets.
    if isinstance(data, dict) and (isinstance(annotations, list) or row.keys() == {"data"}):
        texts, judged = dict(data), list(_of_task(annotations or []))
    elif isinstance(row.get("fields"), dict) and isinstance(answered, dict | list):
        metadata = row.get("metadata")
        texts = {**row["fields"], **(metadata if isinstance(metadata, dict) else {})}
        judged = list(_of_record(answered))
    elif any(name.endswith(_FLAT) and f"{name}.users" in row for name in row):
        texts = {name: value for name, value in row.items() if "." not in name and name not in ("id", "_server_id")}
        judged = list(_of_flat_record(row))
    elif not any(isinstance(value, list | dict) for value in row.values()):
        return None
    elif inner := _rows_of(row):
        return [flat for one in inner for flat in flatten(one) or [FlatRow(one, ())]]
    elif name := next((name for name, value in row.items() if _are_judgments(row, name, value)), ""):
        return _of_list(row, name)
    else:
        return None
    rows = []
    for annotator, answers in judged:
        # A question may have the name of a field: its answer must not take the place of the text that was judged.
        named = {f"{name} (answer)" if name in texts else name: value for name, value in answers.items()}
        rows.append(FlatRow({**texts, ANNOTATOR: annotator, **named}, tuple(named)))
    return rows or [FlatRow({**texts, ANNOTATOR: ""}, ())]


def _rows_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that an object is written around; [] for an object that is a row."""
    if isinstance(row.get("paragraphs"), list):
        return list(_of_article(row))
    around = {name: value for name, value in row.items() if passages.simplify(name) in _AROUND}
    lists = [
        name for name, value in around.items()
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
    ]  # fmt: skip
    texts = f"{passages.DOCUMENT} {passages.QUERY}"
    if len(lists) != 1 or passages.find_key({name: row[name] for name in row if name != lists[0]}, texts):
        return []
    inner: list[dict[str, Any]] = row[lists[0]]
    return inner


def _of_article(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the questions of an article of SQuAD, each with its paragraph."""
    for paragraph in row["paragraphs"]:
        inner = paragraph.get("qas") if isinstance(paragraph, dict) else None
        for one in inner if isinstance(inner, list) else []:
            if isinstance(one, dict):
                rest = {name: value for name, value in one.items() if name != "id"}
                texts = {"title": row.get("title"), "context": paragraph.get("context"), "question_id": one.get("id")}
                yield {**texts, **rest}


def _are_judgments(row: dict[str, Any], name: str, value: Any) -> bool:
    """Return whether a value holds judgments of the document of its row, each with who gave it."""
    if not isinstance(value, list | dict) or passages.simplify(name) not in JUDGMENTS:
        return False
    if not passages.find_key(row, passages.DOCUMENT):
        return False
    if isinstance(value, dict):
        return bool(value) and all(is_grade(str(grade)) for grade in value.values())
    # Without any, the row waits for judgments.
    return (bool(value) or name in ("annotations", "judgments", "ratings")) and all(
        isinstance(one, dict) and passages.find_key(one, _PEOPLE) and passages.find_key(one, _GRADES) for one in value
    )


def _of_list(row: dict[str, Any], name: str) -> list[FlatRow]:
    """Return the judgments of a row's key; an object of grades has people as keys."""
    texts = {key: value for key, value in row.items() if key != name}
    judgments = row[name]
    if isinstance(judgments, dict):
        judgments = [{ANNOTATOR: who, "grade": grade} for who, grade in judgments.items()]
    answer = "grade (answer)" if "grade" in texts else "grade"
    rows = []
    for one in judgments:
        who, grade = passages.find_key(one, _PEOPLE), passages.find_key(one, _GRADES)
        rest = {f"{name}.{key}": value for key, value in one.items() if key not in (who, grade)}
        rows.append(FlatRow({**texts, ANNOTATOR: _name_person(one[who]), answer: one[grade], **rest}, (answer,)))
    return rows or [FlatRow({**texts, ANNOTATOR: ""}, ())]


def _of_task(annotations: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for one in annotations:
        # Label Studio keeps a task that a person skipped as a cancelled annotation.
        if not isinstance(one, dict) or one.get("was_cancelled"):
            continue
        answers = {}
        for result in one.get("result") or []:
            value = result.get("value") if isinstance(result, dict) else None
            control = next((name for name in _CONTROLS if isinstance(value, dict) and name in value), "")
            if control:
                given = value[control]  # type: ignore[index]  # a dict, as the line above says
                # Choices are a list even where only one may be chosen.
                single = given[0] if isinstance(given, list) and len(given) == 1 else given
                answers[str(result.get("from_name") or control)] = single
        if answers:
            yield _name_person(one.get("completed_by")), answers


def _name_person(who: Any) -> str:
    """Return a name for an annotator, whom the tool gives as a number, or as an object with an address or a name."""
    if isinstance(who, dict):
        who = next((who[key] for key in ("email", "username", "id") if who.get(key)), "")
    return "" if who is None else str(who)


def _of_record(responses: dict[str, Any] | list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield answers by person: of Argilla 2 (lists by question) or 1 (of people)."""
    found: dict[str, dict[str, Any]] = {}
    if isinstance(responses, dict):
        # Answers stand by question, so those of one person come from several lists.
        for question, given in responses.items():
            for one in given if isinstance(given, list) else []:
                if isinstance(one, dict) and one.get("status", "submitted") in ("submitted", None):
                    found.setdefault(_name_person(one.get("user_id")), {})[question] = one.get("value")
    else:
        for one in responses:
            if isinstance(one, dict) and one.get("status") == "submitted" and isinstance(one.get("values"), dict):
                values = {name: said.get("value") for name, said in one["values"].items() if isinstance(said, dict)}
                found.setdefault(_name_person(one.get("user_id")), {}).update(values)
    yield from found.items()


def _of_flat_record(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    found: dict[str, dict[str, Any]] = {}
    for name in [one for one in row if one.endswith(_FLAT)]:
        values, users = row[name] or [], row.get(f"{name}.users") or []
        # Without a column of states everything counts as submitted.
        states = row.get(f"{name}.status") or ["submitted"] * len(values)
        for value, user, state in zip(values, users, states, strict=False):
            if state == "submitted":
                found.setdefault(_name_person(user), {})[name.removesuffix(_FLAT)] = value
    yield from found.items()
