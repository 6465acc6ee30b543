"""Answers to what runs ask, read as strictly as verdicts (judges.domain.verdicts). Pure.

They travel through the engine as a Turn whose verdict is 1 and says nothing: a text to search for
as it is, scores and vectors as JSON lists in the order of their documents.
"""

import base64
import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from judges.domain.verdicts import STRICT, ParsingRules, Unparsed, check_string, fields_of
from judges.records import Turn

TEXTS = {"rewrite": "passage", "reason": "reasoning"}  # Role to the one field of its answer.

Vectors = npt.NDArray[np.float32]


def parse_answer(role: str, text: str, documents: int, rules: ParsingRules = STRICT) -> Turn:
    """Return the answer to a question of this role about so many documents. Raises Unparsed."""
    # Only texts come from models that write; scores and vectors come from endpoints, whose answers
    # are read as they are.
    if role in TEXTS:
        name = TEXTS[role]
        said = check_string(fields_of(text, rules, required={name})[name], name).strip()
        if not said:
            raise Unparsed(f'"{name}" is empty')
        return Turn(1, said)
    if role == "rank":
        return Turn(1, json.dumps(_parse_scores(text, documents)))
    if role == "web":
        pages_of(Turn(1, text))
        return Turn(1, text)
    vectors_of(Turn(1, text), documents)
    return Turn(1, text)


def _parse_scores(text: str, documents: int) -> list[float]:
    """Return a score for each document, from {place: score}."""
    found = fields_of(text, required={str(place) for place in range(documents)})
    scores = [found[str(place)] for place in range(documents)]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in scores):
        raise Unparsed("a score is not a number")
    return [float(one) for one in scores]


def scores_of(turn: Turn) -> list[float]:
    """Return the scores of a `rank` answer, in the order of the documents."""
    return [float(one) for one in json.loads(turn.reason)]


class FoundPage(NamedTuple):
    """A page that a web search found. `text` is a stranger's: data, no instructions or markup."""

    url: str
    title: str
    text: str
    published: str  # As the service writes it; "" where it does not say.


def pages_of(turn: Turn) -> list[FoundPage]:
    """Return the pages of a `web` answer, best first. Raises Unparsed."""
    listed = fields_of(turn.reason, required={"results"})["results"]
    if not isinstance(listed, list):
        raise Unparsed('"results" is no list')
    try:
        return [FoundPage(**one) for one in listed]
    except TypeError:
        raise Unparsed("a result is not a page") from None


def pack_vectors(vectors: Sequence[Sequence[float]] | Vectors) -> str:
    """Return vectors as JSON: their size, and float32 numbers (little-endian) in base64, a quarter as long as text."""
    rows = np.asarray(vectors, dtype="<f4")
    return json.dumps({"size": int(rows.shape[1]), "vectors": base64.b64encode(rows.tobytes()).decode()})


def vectors_of(turn: Turn, count: int) -> Vectors:
    """Return the vectors of an `embed` answer, (count, size). Raises Unparsed."""
    found = fields_of(turn.reason, required={"size", "vectors"})
    numbers = np.frombuffer(base64.b64decode(found["vectors"]), dtype="<f4")
    if not found["size"] or len(numbers) != count * found["size"]:
        raise Unparsed("it has not one vector for each text")
    if not np.isfinite(numbers).all():
        raise Unparsed("a vector holds what is no number")
    return numbers.reshape(count, found["size"])
