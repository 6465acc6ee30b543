"""An agent that searches, a writer of reference answers and a grader, without a model: by counting words. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from corpus.search.text import tokenize_text
from judges.offline.judges import (
    STOP_WORDS,
    Lexicon,
    Need,
    information_needs,
    join_sentences,
    matched_share,
    pick_sentences,
    read_sentences,
    sentence_stems,
    stem,
)

SEARCHES = 3  # An offline agent answers after so many.
ENOUGH = 0.8  # The share of the question's weight in the documents at which it answers before that.
TERMS = 6  # Words that a search takes over from the documents.
SENTENCES = 2  # Of an answer for each document, and of a reference answer for each aspect.
FULL, PARTLY = 0.5, 0.2  # Shares of an aspect's weight from which an answer addresses it.

Told = Mapping[str, Any]


def choose_turn(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Search for the question's words, then for what the best documents share beyond them; answer in the end."""
    documents = [one for made in told["rounds"] for one in made["documents"]]
    held = {stem(word) for one in documents for word in tokenize_text(one["text"])}
    (need,) = information_needs(told["question"], (), lexicon)
    share = matched_share(need, held)
    if told["must_answer"] or (documents and share >= ENOUGH) or len(told["rounds"]) >= SEARCHES:
        said = _answer(told["question"], documents, lexicon)
        return {"search": None, "answer": said, "confidence": round(100 * share)}
    lacking = [word for term, word in need.words.items() if term not in held]
    further = _shared_terms((one["text"] for one in documents), set(need.terms), lexicon) if documents else []
    words = [*lacking, *further] if documents else [told["question"]]
    return {"search": " ".join(words) or told["question"], "answer": None, "confidence": None}


def _answer(question: str, documents: list[Told], lexicon: Lexicon) -> str:
    """Return the sentences that hold most of the question's weight, each document's with its id."""
    (need,) = information_needs(question, (), lexicon)
    shares = {one["id"]: matched_share(need, sentence_stems(read_sentences(one["text"]))) for one in documents}
    texts = {one["id"]: one["text"] for one in documents}
    best = sorted(shares, key=lambda key: (-shares[key], key))[:SEARCHES]
    said = [_cite(need, key, texts[key]) for key in best if shares[key] > 0]
    return " ".join(filter(None, said)) or "The documents do not say."


def _cite(need: Need, key: str, text: str) -> str:
    said = join_sentences(text, pick_sentences(need, read_sentences(text), SENTENCES))
    return f"{said} [{key}]" if said else ""


def _shared_terms(texts: Iterable[str], known: set[str], lexicon: Lexicon) -> list[str]:
    """Return the most telling words that the documents share beyond what is known."""
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update({word for word in tokenize_text(text) if word not in STOP_WORDS and not word.isdigit()})
    new = [word for word in counted if stem(word) not in known]
    return sorted(new, key=lambda word: (-counted[word] * lexicon.weight(word), word))[:TERMS]


def grade_answer(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Aspects by the share of their words in the answer; the quality by that of the reference answer's."""
    held = {stem(word) for word in tokenize_text(told["answer"])}

    def share(text: str) -> float:
        return max(matched_share(need, held) for need in information_needs("", (text,), lexicon))

    scores = []
    for one in told["aspects"]:
        found = share(one["text"])
        scores.append({"id": one["id"], "score": 1 if found >= FULL else 0.5 if found >= PARTLY else 0})
    quality = 1 + round(4 * share(told["reference"]))
    return {"aspect_scores": scores, "overall_quality": quality, "justification": "By counting words only."}


def write_reference(told: Told, lexicon: Lexicon) -> dict[str, object]:
    """Return an answer: for each aspect, the most telling sentences of its best passage, with the passage's id."""
    said = []
    for one in told["aspects"]:
        (need,) = information_needs(one["text"], (), lexicon)
        own = {key: text for key, (text, aspects) in told["passages"].items() if one["id"] in aspects}
        ranked = sorted(own, key=lambda key: (-matched_share(need, sentence_stems(read_sentences(own[key]))), key))
        said += [_cite(need, key, own[key]) or f"{own[key][:400].strip()} [{key}]" for key in ranked[:1]]
    return {"answer": "\n\n".join(said) or "There is no passage."}
