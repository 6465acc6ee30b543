"""Parsing of the answers to requests of runs, as strict as that of verdicts (judges.domain.verdicts). Pure.

The engine passes the answers on as a Turn whose verdict is 1 and has no meaning; its reason is a text to search for, or
JSON with scores or vectors in the order of their documents.
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

TEXTS = {"rewrite": "passage", "reason": "reasoning"}  # The only field of a role's answer.

Vectors = npt.NDArray[np.float32]


def parse_answer(role: str, text: str, documents: int, rules: ParsingRules = STRICT) -> Turn:
    """Return the answer to a question of this role about so many documents. Raises Unparsed."""
    # Only texts come from models that write; scores and vectors come from endpoints, whose answers are strict JSON.
    if role in TEXTS:
        name = TEXTS[role]
        passage = check_string(fields_of(text, rules, required={name})[name], name).strip()
        if not passage:
            raise Unparsed(f'"{name}" is empty')
        return Turn(1, passage)
    if role == "rank":
        fields = fields_of(text, required={str(index) for index in range(documents)})
        scores = [fields[str(index)] for index in range(documents)]
        for score in scores:
            if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
                raise Unparsed("a score is not a number")
        return Turn(1, json.dumps([float(score) for score in scores]))
    if role == "web":
        pages_of(Turn(1, text))
        return Turn(1, text)
    vectors_of(Turn(1, text), documents)
    return Turn(1, text)


def scores_of(turn: Turn) -> list[float]:
    """Return the scores of a `rank` answer, in the order of the documents."""
    return [float(score) for score in json.loads(turn.reason)]


class FoundPage(NamedTuple):
    """A page from a web search. `text` is untrusted: data, never instructions or markup."""

    url: str
    title: str
    text: str
    published: str  # In the service's format; "" if unknown.


def pages_of(turn: Turn) -> list[FoundPage]:
    """Return the pages of a `web` answer, best first. Raises Unparsed."""
    results = fields_of(turn.reason, required={"results"})["results"]
    if not isinstance(results, list):
        raise Unparsed('"results" is no list')
    try:
        return [FoundPage(**result) for result in results]
    except TypeError:
        raise Unparsed("a result is not a page") from None


def pack_vectors(vectors: Sequence[Sequence[float]] | Vectors) -> str:
    """Return vectors as JSON: their size, and little-endian float32 in base64, a quarter of the length of decimals."""
    rows = np.asarray(vectors, dtype="<f4")
    return json.dumps({"size": int(rows.shape[1]), "vectors": base64.b64encode(rows.tobytes()).decode()})


def vectors_of(turn: Turn, count: int) -> Vectors:
    """Return the vectors of an `embed` answer, shaped (count, size). Raises Unparsed."""
    fields = fields_of(turn.reason, required={"size", "vectors"})
    numbers = np.frombuffer(base64.b64decode(fields["vectors"]), dtype="<f4")
    if not fields["size"] or len(numbers) != count * fields["size"]:
        raise Unparsed("it has not one vector for each text")
    if not np.isfinite(numbers).all():
        raise Unparsed("a vector holds what is no number")
    return numbers.reshape(count, fields["size"])
