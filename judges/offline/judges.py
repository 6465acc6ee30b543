"""Five lexical relevance assessors: deterministic, weak, and different in kind. Pure.

They count words without understanding them. Each gives a pair a score from 0 to 1 and says yes from a threshold on;
with several answers the best one counts. docs/judge.md explains how the thresholds were set, and how well they do on
the same pairs (an upper bound for others).
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
    """Word statistics of a collection."""

    def weight(self, word: str) -> float:
        """Return the word's inverse document frequency, 0 and up."""

    def share(self, text: str, inputs: Inputs) -> float:
        """Return the document's BM25 score for `text` over the best score of any document in the collection, 0 to 1."""


class UniformLexicon:
    """A lexicon without a collection: all words but stop words have the same weight."""

    def weight(self, word: str) -> float:
        return 0.1 if word in STOP_WORDS else 1.0

    def share(self, text: str, inputs: Inputs) -> float:
        """Return the document's BM25 score for the text over that of a document that contains each word once."""
        counts = Counter(tokenize_text(inputs.document))
        query_words = [word for word in tokenize_text(text) if word not in STOP_WORDS]
        if not query_words:
            return 0.0
        return sum(counts[word] / (counts[word] + 1.5) for word in query_words) / (len(query_words) / 2.5)


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """A sentence of a document: its position in characters, and its stems in order."""

    start: int
    end: int
    stems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """The words that a document needs for one answer, or for a query without answers."""

    text: str
    terms: dict[str, float]  # Weights by stem.
    words: dict[str, str]  # Words as they are written, by stem.
    context: dict[str, float]  # Weights of the query's stems, if `terms` are an answer's.
    total: float


def idf(word: str, frequency: int, documents: int) -> float:
    """Return BM25's inverse document frequency of a word in `frequency` of `documents`; 0.1 for a stop word."""
    return 0.1 if word in STOP_WORDS else log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def stem(word: str) -> str:
    """Return an English word without its ending; short words and other scripts stay as they are."""
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
    """Return a need for each answer, or only that of the query if there are none."""
    context, _ = _weigh_terms(query, lexicon)
    needs = []
    for text in answers or (query,):
        terms, words = _weigh_terms(text, lexicon)
        needs.append(Need(text, terms, words, context if answers else {}, sum(terms.values())))
    return tuple(needs)


def _weigh_terms(text: str, lexicon: Lexicon) -> tuple[dict[str, float], dict[str, str]]:
    """Return the weights and the written words by stem, without stop words unless the text has no others."""
    all_words = tokenize_text(text)
    content_words = [word for word in all_words if word not in STOP_WORDS] or all_words
    terms: dict[str, float] = {}
    words_by_stem: dict[str, str] = {}
    for word in content_words:
        terms.setdefault(stem(word), lexicon.weight(word))
        words_by_stem.setdefault(stem(word), word)
    return terms, words_by_stem


def sentence_stems(spoken: Iterable[ReadSentence]) -> set[str]:
    return {term for sentence in spoken for term in sentence.stems}


def runs_of(parts: Sequence[T], size: int) -> list[Sequence[T]]:
    """Return every run of `size` consecutive parts, or a single run of all parts if there are fewer."""
    return [parts[start : start + size] for start in range(max(1, len(parts) - size + 1))]


def matched_share(need: Need, stems: frozenset[str] | set[str]) -> float:
    """Return the share of the need's weight that the stems contain, 0 to 1."""
    return sum(weight for term, weight in need.terms.items() if term in stems) / need.total if need.total else 0.0


def join_sentences(text: str, sentences: Iterable[ReadSentence]) -> str:
    return " ".join(text[sentence.start : sentence.end].strip() for sentence in sentences)


def pick_sentences(need: Need, sentences: Sequence[ReadSentence], limit: int, gain: float = 1e-9) -> list[ReadSentence]:
    """Pick up to `limit` sentences greedily, each of which adds at least `gain` to the share; in the text's order."""
    picked: list[ReadSentence] = []
    stems: set[str] = set()
    while len(picked) < limit:
        # The gain of a sentence depends on those that are already picked.
        rest = [sentence for sentence in sentences if sentence not in picked]
        best = max(
            rest,
            key=lambda sentence: (matched_share(need, stems.union(sentence.stems)), -sentence.start),
            default=None,
        )
        # The first is always picked, so that a document without a match still gives a sentence.
        if best is None or (
            picked and matched_share(need, stems.union(best.stems)) < matched_share(need, stems) + gain
        ):
            break
        picked.append(best)
        stems.update(best.stems)
    return sorted(picked, key=lambda sentence: sentence.start)


def answer_containment(inputs: Inputs, lexicon: Lexicon) -> float:
    """Return how much of an answer three sentences in a row contain, 0 to 1."""
    run_stems = [sentence_stems(run) for run in runs_of(read_sentences(inputs.document), 3)]
    needs = information_needs(inputs.query, inputs.answers, lexicon)
    return max(matched_share(need, stems) for need in needs for stems in run_stems)


def bm25(inputs: Inputs, lexicon: Lexicon) -> float:
    """Return the document's BM25 score for an answer over the best in the collection, 0 to 1."""
    return max(min(1.0, lexicon.share(text, inputs)) for text in inputs.answers or (inputs.query,))


def tfidf(inputs: Inputs, lexicon: Lexicon) -> float:
    """Return the cosine between the query with an answer and two sentences in a row with the title."""
    title = tuple(tokenize_text(inputs.title))
    sentences = [inputs.document[sentence.start : sentence.end] for sentence in read_sentences(inputs.document)]
    sentence_words = [tuple(tokenize_text(sentence)) for sentence in sentences]
    run_vectors = [_tfidf_vector(title + sum(run, ()), lexicon) for run in runs_of(sentence_words, 2)]
    query_vectors = [_query_vector(f"{inputs.query} {answer}", lexicon) for answer in inputs.answers or ("",)]

    def cosine(first: tuple[dict[str, float], float], second: tuple[dict[str, float], float]) -> float:
        (first_weights, first_length), (second_weights, second_length) = first, second
        if not first_length or not second_length:
            return 0.0
        product = sum(value * second_weights.get(term, 0.0) for term, value in first_weights.items())
        return product / (first_length * second_length)

    return max(cosine(query_vector, run_vector) for query_vector in query_vectors for run_vector in run_vectors)


@lru_cache(maxsize=2048)  # The same query is compared with many documents.
def _query_vector(text: str, lexicon: Lexicon) -> tuple[dict[str, float], float]:
    return _tfidf_vector(tuple(tokenize_text(text)), lexicon)


def _tfidf_vector(words: Sequence[str], lexicon: Lexicon) -> tuple[dict[str, float], float]:
    """Return (1 + log count) x idf by stem, and the length of this vector."""
    counts: Counter[str] = Counter()
    weights: dict[str, float] = {}
    for word in words:
        if word not in STOP_WORDS:
            root = stem(word)
            counts[root] += 1
            if root not in weights:
                weights[root] = lexicon.weight(word)
    vector = {root: (1.0 + log(number)) * weights[root] for root, number in counts.items()}
    return vector, sqrt(sum(value * value for value in vector.values()))


def term_coverage(inputs: Inputs, lexicon: Lexicon) -> float:
    """Return the share of needed words (the query's count half): the mean over the document and 30 words of it."""
    stems = [term for sentence in read_sentences(inputs.document) for term in sentence.stems]
    return max(_need_coverage(need, stems) for need in information_needs(inputs.query, inputs.answers, lexicon))


def _need_coverage(need: Need, stems: list[str]) -> float:
    # A word of the answer has its full weight, even if the query contains it as well.
    weights = {term: weight / 2 for term, weight in need.context.items()} | need.terms
    total = sum(weights.values())
    occurrences = [(position, term) for position, term in enumerate(stems) if term in weights]
    if not occurrences or not total:
        return 0.0
    window_weight = best_weight = 0.0
    window_counts: Counter[str] = Counter()
    first = 0
    for position, term in occurrences:
        window_counts[term] += 1
        window_weight += weights[term] if window_counts[term] == 1 else 0.0
        # The window ends at the current word; words that fall out of it are removed.
        while position - occurrences[first][0] > 30:
            dropped_term = occurrences[first][1]
            window_counts[dropped_term] -= 1
            # A word that occurs twice in the window counts once.
            window_weight -= weights[dropped_term] if window_counts[dropped_term] == 0 else 0.0
            first += 1
        best_weight = max(best_weight, window_weight)
    total_found = sum(weights[term] for term in {term for _, term in occurrences})
    return min(1.0, (total_found + best_weight) / (2 * total))


def ngram_overlap(inputs: Inputs, lexicon: Lexicon) -> float:
    """Return the share of an answer's character 5-grams in three sentences in a row with the title."""
    # All assessors take the same arguments; this one needs no weights.
    del lexicon
    spans = read_sentences(inputs.document)
    parts = [_character_ngrams(inputs.document[span.start : span.end]) for span in spans] or [frozenset()]
    title = _character_ngrams(inputs.title)
    run_grams = [title.union(*run) for run in runs_of(parts, 3)]
    needed_grams = [_character_ngrams(text) for text in inputs.answers or (inputs.query,)]
    return max((len(grams & unit) / len(grams) for grams in needed_grams if grams for unit in run_grams), default=0.0)


@lru_cache(maxsize=8192)
def _character_ngrams(text: str) -> frozenset[str]:
    # Padded with blanks, so that the first and the last word have boundaries too.
    padded = f" {' '.join(tokenize_text(text))} "
    return frozenset(padded[start : start + 5] for start in range(len(padded) - 4))


# By model: the scoring function, the meaning of its score, and the thresholds with and without answers.
ASSESSORS: dict[str, tuple[Callable[[Inputs, Lexicon], float], str, float, float]] = {
    "answers": (answer_containment, "of an answer's weighted words stand in three sentences in a row", 0.45, 0.49),
    "bm25": (bm25, "of the best BM25 score in the collection", 0.70, 0.86),
    "tfidf": (tfidf, "TF-IDF cosine with two sentences in a row", 0.37, 0.29),
    "coverage": (term_coverage, "of the wanted words covered, counting nearness", 0.44, 0.48),
    "ngrams": (ngram_overlap, "of the character 5-grams found in three sentences in a row", 0.34, 0.45),
}


CLOSE = 0.05  # Distances of two documents that differ by less are equal.


def score_to_grade(distance: float, highest: int, relevant_from: int) -> int:
    """Return a grade from 0 to `highest` for a distance of `assess_relevance`; 0 or more means relevant."""
    if distance >= 0:
        return min(highest, relevant_from + int(distance * (highest - relevant_from + 1)))
    return max(0, relevant_from - 1 - int(-distance * relevant_from))


def assess_relevance(model: str, inputs: Inputs, lexicon: Lexicon) -> tuple[int, str, float]:
    """Return an assessor's verdict (1 or 0), its reason, and the distance of its score from the threshold.

    The distance is -1 at the lowest score, 0 at the threshold, 1 at the highest score. Raises KeyError for a model that
    is not in ASSESSORS.
    """
    scorer, meaning, with_answers, without = ASSESSORS[model]
    threshold = with_answers if inputs.answers else without
    score = scorer(inputs, lexicon)
    meaning = meaning if inputs.answers else meaning.replace("an answer's", "the query's")
    sign = "reaches" if score >= threshold else "is below"
    reason = f"By counting only: {score:.2f} {meaning}, which {sign} {threshold:.2f}."
    # The distance is relative to the side of the threshold, so that both 1 and -1 can be reached.
    span = 1 - threshold if score >= threshold else threshold
    return int(score >= threshold), reason, max(-1.0, min(1.0, (score - threshold) / span))


def compare_documents(model: str, first: Inputs, second: Inputs, lexicon: Lexicon) -> dict[str, object]:
    """Return which of a query's two documents an assessor scores higher: A, the first one, or B.

    Both are bad if neither reaches the threshold, and equal if their distances from it differ by less than CLOSE.
    Raises KeyError for a model that is not in ASSESSORS.
    """
    (verdict, _, distance), (other_verdict, _, other_distance) = (
        assess_relevance(model, inputs, lexicon) for inputs in (first, second)
    )
    reason = f"By counting only: {distance:+.2f} for A and {other_distance:+.2f} for B, from the threshold at 0."
    if not (verdict or other_verdict):
        return {"reason": reason, "preference": "both bad"}
    if abs(distance - other_distance) < CLOSE:
        return {"reason": reason, "preference": "equal"}
    return {"reason": reason, "preference": "A" if distance > other_distance else "B"}
