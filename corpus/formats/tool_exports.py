"""Exports of Label Studio and Argilla: each judgment with its texts as one flat row. Pure.

A row has the fields of the task or record, `annotator`, and each answer by the name of its question. A record that
nobody judged is one row without an annotator.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

ANNOTATOR = "annotator"
_CONTROLS = ("choices", "rating", "number")  # What of Label Studio's controls can hold a grade.
_FLAT = ".responses"


class FlatRow(NamedTuple):
    """A judgment, or a record without one. `answers`: the names of its columns that a person filled."""

    values: dict[str, Any]
    answers: tuple[str, ...]


def is_tool_export(row: dict[str, Any]) -> bool:
    """Return whether an object is a task of Label Studio or a record of Argilla."""
    return _is_task(row) or _is_record(row) or _is_flat_record(row)


def flatten(row: dict[str, Any]) -> list[FlatRow]:
    """Return the judgments of a task or record, each with its texts."""
    if _is_task(row):
        texts, judged = dict(row["data"]), list(_of_task(row["annotations"]))
    elif _is_record(row):
        metadata = row.get("metadata")
        texts = {**row["fields"], **(metadata if isinstance(metadata, dict) else {})}
        judged = list(_of_record(row["responses"] or {}))
    else:
        texts = {name: value for name, value in row.items() if "." not in name and name not in ("id", "_server_id")}
        judged = list(_of_flat_record(row))
    rows = []
    for annotator, answers in judged:
        # A question may have the name of a field: its answer must not take the place of the text that was judged.
        named = {f"{name} (answer)" if name in texts else name: value for name, value in answers.items()}
        rows.append(FlatRow({**texts, ANNOTATOR: annotator, **named}, tuple(named)))
    return rows or [FlatRow({**texts, ANNOTATOR: ""}, ())]


def _is_task(row: dict[str, Any]) -> bool:
    return isinstance(row.get("data"), dict) and isinstance(row.get("annotations"), list)


def _is_record(row: dict[str, Any]) -> bool:
    return isinstance(row.get("fields"), dict) and isinstance(row.get("responses"), dict | list)


def _is_flat_record(row: dict[str, Any]) -> bool:
    return any(name.endswith(_FLAT) and f"{name}.users" in row for name in row)


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
    """Yield the answers by person: of Argilla 2 (a list for each question), or of 1 (a list of people)."""
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
