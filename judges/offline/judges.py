"""Five lexical relevance assessors: real, deterministic, weak, and different in kind. Pure.

They count words and never understand them. Each gives a pair a score from 0 to 1 and says yes from
a threshold on; with several answers the best one counts. How the thresholds were set, and what was
measured on the same pairs (an upper bound of what they can do elsewhere), is told in docs/judge.md.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt
from typing import Protocol, TypeVar

from corpus.search.text import split_sentences, tokenize_text
from judges.records import Inputs

T = TypeVar("T")
STOP_WORDS = frozenset(
    tokenize_text(
        "a an and are as at be been but by can could did do does for from had has have how i if in into is it its may "
        "more most no not of on or s should such than that the their then there these they this those to was we were "
        "what when where which while who why will with would you your so only all any each other one some same also"
    )
)
SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s", "e")


class Lexicon(Hashable, Protocol):
    """Knowledge of a collection about words."""

    def weight(self, word: str) -> float:
        """Return the word's inverse document frequency, 0 and up."""

    def share(self, text: str, inputs: Inputs) -> float:
        """Return the document's BM25 score for `text` over the best score of any document in the collection, 0 to 1."""


class UniformLexicon:
    """A lexicon without a collection: every word but stop words tells as much as any other."""

    def weight(self, word: str) -> float:
        return 0.1 if word in STOP_WORDS else 1.0

    def share(self, text: str, inputs: Inputs) -> float:
        """BM25 of the text over that of a document which holds each of its words once."""
        held = Counter(tokenize_text(inputs.document))
        asked = [word for word in tokenize_text(text) if word not in STOP_WORDS]
        return sum(held[word] / (held[word] + 1.5) for word in asked) / (len(asked) / 2.5) if asked else 0.0


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """A sentence of a document: where it stands, and its stems in order."""

    start: int
    end: int
    stems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """Words that must be said for one answer, or for the query without any: stem to weight."""

    text: str
    terms: dict[str, float]
    words: dict[str, str]  # Stem to the word as it was written.
    context: dict[str, float]  # The query's stems, where `terms` are an answer's.
    total: float


def idf(word: str, frequency: int, documents: int) -> float:
    """BM25's inverse document frequency of a word that stands in `frequency` of `documents`; 0.1 for a stop word."""
    return 0.1 if word in STOP_WORDS else log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def stem(word: str) -> str:
    """Return an English word without its ending; other scripts and short words as they are."""
    # Endings are English ones, and short words lose their meaning with them.
    if not word.isascii() or len(word) < 4:
        return word
    if len(word) == 4:
        return word[:-1] if word.endswith("s") else word
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


@lru_cache(maxsize=512)
def read_sentences(document: str) -> tuple[ReadSentence, ...]:
    spans = [(span.start, span.end) for span in split_sentences(document)]
    return tuple(ReadSentence(start, end, tuple(map(stem, tokenize_text(document[start:end])))) for start, end in spans)


@lru_cache(maxsize=512)
def information_needs(query: str, answers: tuple[str, ...], lexicon: Lexicon) -> tuple[Need, ...]:
    """Return one need for each answer, or the query's alone."""
    context, _ = _weigh_terms(query, lexicon)
    found = []
    for text in answers or (query,):
        terms, written = _weigh_terms(text, lexicon)
        found.append(Need(text, terms, written, context if answers else {}, sum(terms.values())))
    return tuple(found)


def _weigh_terms(text: str, lexicon: Lexicon) -> tuple[dict[str, float], dict[str, str]]:
    """Stems of the words that tell something (of all, if none), with weights and as written."""
    found = tokenize_text(text)
    telling = [word for word in found if word not in STOP_WORDS] or found
    terms: dict[str, float] = {}
    written: dict[str, str] = {}
    for word in telling:
        terms.setdefault(stem(word), lexicon.weight(word))
        written.setdefault(stem(word), word)
    return terms, written


def sentence_stems(spoken: Iterable[ReadSentence]) -> set[str]:
    return {term for sentence in spoken for term in sentence.stems}


def runs_of(parts: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return every `size` parts in a row; all of them, where there are fewer."""
    # A document of fewer sentences is one run of all it has.
    return [parts[at : at + size] for at in range(max(1, len(parts) - size + 1))]


def matched_share(need: Need, stems: frozenset[str] | set[str]) -> float:
    """Return the share of the need's weight that the stems hold, 0 to 1."""
    return sum(weight for term, weight in need.terms.items() if term in stems) / need.total if need.total else 0.0


def join_sentences(text: str, chosen: Iterable[ReadSentence]) -> str:
    return " ".join(text[one.start : one.end].strip() for one in chosen)


def pick_sentences(need: Need, spoken: Sequence[ReadSentence], most: int, gain: float = 1e-9) -> list[ReadSentence]:
    """Pick up to `most` sentences, each adding most to what is held and at least `gain`, in the text's order."""
    chosen: list[ReadSentence] = []
    held: set[str] = set()
    while len(chosen) < most:
        # Chosen again in each turn: what a sentence adds depends on what is held already.
        rest = [one for one in spoken if one not in chosen]
        best = max(rest, key=lambda one: (matched_share(need, held.union(one.stems)), -one.start), default=None)
        # The first is taken in any case, so that a document without a match still gives a sentence.
        if best is None or (chosen and matched_share(need, held.union(best.stems)) < matched_share(need, held) + gain):
            break
        chosen.append(best)
        held.update(best.stems)
    return sorted(chosen, key=lambda one: one.start)


def answer_containment(inputs: Inputs, lexicon: Lexicon) -> float:
    """Return how much of an answer three sentences in a row hold, 0 to 1."""
    near = [sentence_stems(run) for run in runs_of(read_sentences(inputs.document), 3)]
    wanted = information_needs(inputs.query, inputs.answers, lexicon)
    return max(matched_share(need, stems) for need in wanted for stems in near)


def bm25(inputs: Inputs, lexicon: Lexicon) -> float:
    """How near the document comes to the best of the whole collection for an answer, 0 to 1."""
    return max(min(1.0, lexicon.share(text, inputs)) for text in inputs.answers or (inputs.query,))


def tfidf(inputs: Inputs, lexicon: Lexicon) -> float:
    """Cosine between query with answer and two sentences in a row with the title."""
    title = tuple(tokenize_text(inputs.title))
    spoken = [tuple(tokenize_text(inputs.document[one.start : one.end])) for one in read_sentences(inputs.document)]
    units = [_tfidf_vector(title + sum(run, ()), lexicon) for run in runs_of(spoken, 2)]
    asked = [_query_vector(f"{inputs.query} {answer}", lexicon) for answer in inputs.answers or ("",)]
    return max(
        sum(value * there.get(term, 0.0) for term, value in own.items()) / (length * width) if length and width else 0.0
        for own, length in asked
        for there, width in units
    )


@lru_cache(maxsize=2048)
# Cached, because the same query is compared with many documents.
def _query_vector(text: str, lexicon: Lexicon) -> tuple[dict[str, float], float]:
    return _tfidf_vector(tuple(tokenize_text(text)), lexicon)


def _tfidf_vector(found: Sequence[str], lexicon: Lexicon) -> tuple[dict[str, float], float]:
    """Stem to (1 + log count) x idf, and the length of that vector."""
    counts: Counter[str] = Counter()
    weights: dict[str, float] = {}
    for word in found:
        if word not in STOP_WORDS:
            root = stem(word)
            counts[root] += 1
            if root not in weights:
                weights[root] = lexicon.weight(word)
    vector = {root: (1.0 + log(number)) * weights[root] for root, number in counts.items()}
    return vector, sqrt(sum(value * value for value in vector.values()))


def term_coverage(inputs: Inputs, lexicon: Lexicon) -> float:
    """Share of the wanted words (the query's count half) in the document, and within 30 words: the mean of both."""
    flat = [term for sentence in read_sentences(inputs.document) for term in sentence.stems]
    return max(_need_coverage(need, flat) for need in information_needs(inputs.query, inputs.answers, lexicon))


def _need_coverage(need: Need, flat: list[str]) -> float:
    # What stands in the answers counts whole, also where the query has the same word.
    wanted = {term: weight / 2 for term, weight in need.context.items()} | need.terms
    total = sum(wanted.values())
    places = [(at, term) for at, term in enumerate(flat) if term in wanted]
    if not places or not total:
        return 0.0
    near = best = 0.0
    inside: Counter[str] = Counter()
    first = 0
    for at, term in places:
        inside[term] += 1
        near += wanted[term] if inside[term] == 1 else 0.0
        # The window follows the last word that was found; words that fell out are taken away again.
        while at - places[first][0] > 30:
            gone = places[first][1]
            inside[gone] -= 1
            # A word that stands twice in the window counts once.
            near -= wanted[gone] if inside[gone] == 0 else 0.0
            first += 1
        best = max(best, near)
    anywhere = sum(wanted[term] for term in {term for _, term in places})
    return min(1.0, (anywhere + best) / (2 * total))


def ngram_overlap(inputs: Inputs, lexicon: Lexicon) -> float:
    """Share of an answer's runs of five characters in three sentences in a row with the title."""
    # All scorers take the same arguments; this one needs no weights.
    del lexicon
    spans = read_sentences(inputs.document)
    parts = [_character_ngrams(inputs.document[one.start : one.end]) for one in spans] or [frozenset()]
    title = _character_ngrams(inputs.title)
    near = [title.union(*run) for run in runs_of(parts, 3)]
    wanted = [_character_ngrams(text) for text in inputs.answers or (inputs.query,)]
    return max((len(grams & unit) / len(grams) for grams in wanted if grams for unit in near), default=0.0)


@lru_cache(maxsize=8192)
def _character_ngrams(text: str) -> frozenset[str]:
    # Blanks at both ends, so that beginnings and ends of words count.
    padded = f" {' '.join(tokenize_text(text))} "
    return frozenset(padded[at : at + 5] for at in range(len(padded) - 4))


# A scorer, what its score means, and from which score on it says yes: with answers, and without.
ASSESSORS: dict[str, tuple[Callable[[Inputs, Lexicon], float], str, float, float]] = {
    "answers": (answer_containment, "of an answer's weighted words stand in three sentences in a row", 0.45, 0.49),
    "bm25": (bm25, "of the best BM25 score in the collection", 0.70, 0.86),
    "tfidf": (tfidf, "TF-IDF cosine with two sentences in a row", 0.37, 0.29),
    "coverage": (term_coverage, "of the wanted words covered, counting nearness", 0.44, 0.48),
    "ngrams": (ngram_overlap, "of the character 5-grams found in three sentences in a row", 0.34, 0.45),
}


def score_to_grade(place: float, highest: int, relevant_from: int) -> int:
    """Return a grade, 0 to `highest`, for a place of `assess_relevance`: `relevant_from` on where it is 0 or more."""
    if place >= 0:
        return min(highest, relevant_from + int(place * (highest - relevant_from + 1)))
    return max(0, relevant_from - 1 - int(-place * relevant_from))


def assess_relevance(model: str, inputs: Inputs, lexicon: Lexicon) -> tuple[int, str, float]:
    """Verdict (1 relevant, 0) and reason of one assessor, and how far the score lies from its
    threshold: -1 at the worst, 0 at the threshold, 1 at the best. Raises KeyError for a model that
    is not in ASSESSORS.
    """
    scorer, meaning, with_answers, without = ASSESSORS[model]
    threshold = with_answers if inputs.answers else without
    score = scorer(inputs, lexicon)
    meaning = meaning if inputs.answers else meaning.replace("an answer's", "the query's")
    sign = "reaches" if score >= threshold else "is below"
    reason = f"By counting only: {score:.2f} {meaning}, which {sign} {threshold:.2f}."
    # The distance is a share of its side of the threshold, so 1 and -1 can be reached.
    span = 1 - threshold if score >= threshold else threshold
    return int(score >= threshold), reason, max(-1.0, min(1.0, (score - threshold) / span))
