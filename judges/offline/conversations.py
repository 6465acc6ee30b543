"""Steps of conversations without a model, by counting words, so that a demo needs no key: deterministic and weak.

Each function answers for one role, from the step's `material`, which contains the same as its prompt.
"""

from collections.abc import Callable, Mapping
from typing import Any

from corpus.search.text import tokenize_text
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

ENOUGH = 0.3  # Share of the query's weight that sentences must contain to be an answer.
SAME = 0.6  # Share of a reference answer's weight that a correct answer contains.

Material = Mapping[str, Any]


def _answer_from_contexts(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Return the sentences of the contexts with most of the query's weight, two at most."""
    (need,) = information_needs(material["query"], (), lexicon)
    text = "\n".join(material["contexts"])
    sentences = pick_sentences(need, read_sentences(text), 2)
    share = matched_share(need, sentence_stems(sentences))
    return {"Answer": join_sentences(text, sentences) if sentences and share >= ENOUGH else NO_INFORMATION}


def _check_answer(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Return whether the answer contains most of the weight of one of the reference answers."""
    stems = {stem(word) for word in tokenize_text(material["answer"])}
    needs = information_needs("", tuple(material["references"]), lexicon)
    return {"correct": any(matched_share(need, stems) >= SAME for need in needs)}


ROLES: dict[str, Callable[[Material, Lexicon], dict[str, object]]] = {
    "answer": _answer_from_contexts,
    "correct": _check_answer,
    **synthesis.ROLES,
    "search": agents.choose_turn,
    "assess": agents.grade_answer,
    "reference": agents.write_reference,
}
# Roles that read documents which BM25 finds for the query of their material, and how many.
READERS = synthesis.READERS
