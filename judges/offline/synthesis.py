"""Synthetic queries and documents without a model, by counting words, so that a demo needs no key.

They are deterministic and weak, and say so: answers and passages are sentences of the collection's documents, plans
consist of their rarest words.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corpus.search.text import tokenize_text
from judges.offline.judges import (
    STOP_WORDS,
    Lexicon,
    information_needs,
    join_sentences,
    pick_sentences,
    read_sentences,
    stem,
)

Material = Mapping[str, Any]
# Words of questions that a single passage seldom answers.
ANALYTICAL = frozenset(
    tokenize_text("how why compare comparison difference differences explain effect effects affect cause")
)
ORDER = ("First", "Second", "Third")
SENTENCES = 4  # Sentences of a document in a passage.
KEYWORDS = 6  # Words in the keyword form of a query.
READ_SENTENCES = 3  # Sentences of a document on which a query is based.
# Roles that read documents which BM25 finds for the query, and how many.
READERS = {"outline": 3, "compose": 12}


def find_rare_terms(text: str, lexicon: Lexicon, limit: int = 4) -> list[str]:
    """Return the rarest words of a text, in its order."""
    words = dict.fromkeys(word for word in tokenize_text(text) if word not in STOP_WORDS)
    rarest = set(sorted(words, key=lambda word: (-lexicon.weight(word), word))[:limit])
    return [word for word in words if word in rarest] or ["this"]


def _write_persona(material: Material, lexicon: Lexicon) -> dict[str, object]:
    words = ", ".join(find_rare_terms(material["query"], lexicon))
    return {
        "persona": f"Somebody without a model, who looks into {words} by counting words",
        "question": f"{material['query'].strip().rstrip('?.!')}?",
        "background": f"I have read about {words} before and do not see how it hangs together. "
        "This background was put together offline, by counting words.",
    }


def _classify_query(material: Material, lexicon: Lexicon) -> dict[str, object]:
    question = material["query"].partition("\n")[0]
    return {"type": "analytical" if ANALYTICAL.intersection(tokenize_text(question)) else "factual"}


def _outline_answer(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Answer with the best sentence of each document."""
    sentences = [pick_text(material["query"], document, lexicon, 1) for document in material["documents"]]
    return {"answer": " ".join(dict.fromkeys(filter(None, sentences))) or "The collection says nothing about this."}


def pick_text(query: str, document: str, lexicon: Lexicon, limit: int, without: frozenset[str] = frozenset()) -> str:
    """Return the document's sentences with most of the query's weight, none of which has a stem of `without`."""
    (need,) = information_needs(query, (), lexicon)
    sentences = [sentence for sentence in read_sentences(document) if without.isdisjoint(sentence.stems)]
    return join_sentences(document, pick_sentences(need, sentences, limit))


def _name_aspects(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Name an aspect for each of the answer's first sentences; a single sentence is split into two parts."""
    answer = material["answer"]
    parts = [answer[sentence.start : sentence.end] for sentence in read_sentences(answer)][: len(ORDER)]
    if len(parts) < 2:
        words = answer.split()
        parts = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
    part_words = [", ".join(find_rare_terms(part, lexicon)) for part in parts]
    return {
        "aspects": [
            {"aspect": f"{order} part: {words}", "rationale": f"It carries what the answer says of {words}."}
            for order, words in zip(ORDER, part_words, strict=False)
        ]
    }


def _plan_positives(material: Material, lexicon: Lexicon) -> dict[str, object]:
    subjects = [subject["aspect"] for subject in material["aspects"]] or [material["query"].partition("\n")[0]]
    return {
        "blueprints": [
            _plan_passage(number, ", ".join(find_rare_terms(subject, lexicon)), "It speaks of")
            for number, subject in enumerate(subjects, 1)
        ]
    }


def _plan_passage(number: int, words: str, purpose: str) -> dict[str, str]:
    return {
        "rationale": f"{purpose} {words}.",
        "passage_type": "excerpt",
        "source": "the collection",
        "title": f"{words.capitalize()} ({purpose.partition(' ')[0].lower()}, {number})",
        # The words are in the middle, since one at the end of a sentence could pass for an abbreviation.
        "summary": f"What {words} mean is told here. It is told in sentences of the collection. "
        "Words were counted for it.",
    }


def _plan_negatives(material: Material, lexicon: Lexicon) -> dict[str, object]:
    planned = []
    for number, positive in enumerate(material["positives"], 1):
        words = ", ".join(find_rare_terms(positive["title"], lexicon, 2))
        plan = _plan_passage(number, ", ".join(find_rare_terms(material["query"], lexicon)), "Around")
        planned.append(plan | {"failure": f"It leaves out {words}.", "missing_aspect": words})
    return {"blueprints": planned}


def _write_passages(material: Material, lexicon: Lexicon) -> dict[str, object]:
    """Write each passage from one document: from the best for positives, from the last for negatives."""
    documents: Sequence[str] = material["documents"]
    passages = []
    for number, plan in enumerate(material["plans"]):
        avoided_stems = frozenset(map(stem, tokenize_text(plan.get("missing_aspect", ""))))
        index = -1 - number if avoided_stems else number
        document = documents[index % len(documents)] if documents else ""
        sentences = pick_text(material["query"], document, lexicon, SENTENCES, avoided_stems)
        passages.append(f"{plan['title']}. {sentences or plan['summary']}")
    return {"passages": passages}


def _ask_for_document(material: Material, lexicon: Lexicon) -> dict[str, object]:
    document = material["document"]
    beginning = " ".join(
        document[sentence.start : sentence.end] for sentence in read_sentences(document)[:READ_SENTENCES]
    )
    return {"query": f"What is known about {', '.join(find_rare_terms(beginning, lexicon))}?"}


ROLES: dict[str, Callable[[Material, Lexicon], dict[str, object]]] = {
    "persona": _write_persona,
    "classify": _classify_query,
    "outline": _outline_answer,
    "decompose": _name_aspects,
    "blueprint": _plan_positives,
    "negatives": _plan_negatives,
    "compose": _write_passages,
    "keywords": lambda material, lexicon: {"keywords": find_rare_terms(material["query"], lexicon, KEYWORDS)},
    "ask": _ask_for_document,
}
