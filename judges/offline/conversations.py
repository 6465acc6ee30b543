"""Steps of conversations without a model: by counting words, so that a demo needs no key. Real, deterministic, weak.

Each function answers one role from the step's `material`, which its prompt is made of.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corpus.search.text import tokenize_text
from judges.errors import Rejected
from judges.offline import agents, synthesis
from judges.offline.judges import (
    Lexicon,
    information_needs,
    join_sentences,
    matched_share,
    pick_sentences,
    read_sentences,
    sentence_stems,
    stem,
)
from judges.prompts.conversations import NO_INFORMATION
from judges.records import ModelRequest

ENOUGH = 0.3  # The share of the query's weight that the chosen sentences must hold to be an answer.
SAME = 0.6  # The share of a reference answer's weight that a right answer holds.

Told = Mapping[str, Any]


def answer_step(request: ModelRequest, lexicon: Lexicon, documents: Sequence[str] = ()) -> dict[str, object]:
    """Return the answer of the offline judge for a conversation's step. Raises Rejected for a role that it lacks.

    `documents`: those that the role reads (READERS), best first.
    """
    if request.role not in ROLES:
        raise Rejected(f"Offline judges have no answer for the role {request.role}.")
    told = {**request.material, "documents": documents} if request.role in READERS else request.material
    return ROLES[request.role](told, lexicon)


def _answer_from_contexts(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Return the sentences of the contexts that hold most of the query's weight, two at most."""
    (need,) = information_needs(told["query"], (), lexicon)
    text = "\n".join(told["contexts"])
    chosen = pick_sentences(need, read_sentences(text), 2)
    held = matched_share(need, sentence_stems(chosen))
    return {"Answer": join_sentences(text, chosen) if chosen and held >= ENOUGH else NO_INFORMATION}


def _check_answer(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Return whether the answer holds most of the weight of one of the reference answers."""
    held = {stem(word) for word in tokenize_text(told["answer"])}
    needs = information_needs("", tuple(told["references"]), lexicon)
    return {"correct": any(matched_share(need, held) >= SAME for need in needs)}


ROLES: dict[str, Callable[[Told, Lexicon], dict[str, object]]] = {
    "answer": _answer_from_contexts,
    "correct": _check_answer,
    **synthesis.ROLES,
    "search": agents.choose_turn,
    "assess": agents.grade_answer,
    "reference": agents.write_reference,
}
# Steps that read the documents which BM25 finds for the query of their material, and how many.
READERS = synthesis.READERS
