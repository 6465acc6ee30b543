"""Words, sentences, language and direction of a text, for all parts of the program. Pure."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import Stemmer

_STEMMED = frozenset({"de", "en", "es", "fr", "it", "nl", "pt", "ru"})  # Of the languages that are detected here.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0002fa1f"
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_CJK_RUN = re.compile(f"[{CJK}]+")
# Marks that may be written or left out: Arabic vowels and the tatweel.
_OPTIONAL_DIACRITICS = re.compile("[\u0640\u064b-\u065f\u0670]")
_END = re.compile(r"[.!?…؟۔]+[\"'”’»)\]]*(?=\s|\Z)|[。！？｡؟।]+[」』”’）)]*|\n[ \t]*(?:\r?\n[ \t]*)+")
_ABBREVIATIONS = frozenset(
    """al approx ca cf ch col dept dr ed eds eg e.g eq eqs esp est etc fig figs gen ie i.e inc jr ltd mr mrs ms no nos
    op p.m a.m p pp prof ref refs rep sec sr st u.k u.s univ viz vol vols vs""".split()  # noqa: SIM905
)
_LATIN_LANGUAGES = {
    "de": "der die das und ist nicht mit ein eine für auf von den dem zu",
    "en": "the of and to is in that for with are as be by on this it",
    "es": "el la los las de que y en un una es por con para del",
    "fr": "le la les des et est une dans pour que qui sur du pas au",
    "it": "il lo gli di che e una per con non è della sono nel",
    "nl": "de het een en van is niet dat met op voor zijn te door",
    "pt": "o os as de que e em um uma é por com para não do da",
}
_STOP_WORDS = {language: frozenset(words.split()) for language, words in _LATIN_LANGUAGES.items()}
# Words of an English question that are not among its terms.
_ENGLISH_STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being between both but by can could did do
    does doing done during each few for from further had has have having he her here hers him his how i if in into is
    it its just many may me might more most much must my no nor not of off on once only or other our out over own same
    shall she should so some such than that the their them then there these they this those through to too under until
    up us use used using very was we were what when where which while who whom whose why will with would you
    your""".split()  # noqa: SIM905
)
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")),
    ("fa", re.compile(r"[پچژگ]")),
    ("ar", re.compile(r"[\u0600-\u06ff\u0750-\u077f]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters [start, end) of a text, without white space at either end and never empty."""

    start: int
    end: int


@cache
def _any_word() -> re.Pattern[str]:
    """Return the pattern of letters and digits of any script, with marks."""
    # Built on first use, since it checks every character of the plane.
    marks = "".join(c for c in map(chr, range(0x300, 0xFFFF)) if unicodedata.category(c) in {"Mn", "Mc"})
    return re.compile(f"[^\\W_][^\\W_{re.escape(marks)}]*(?:[{re.escape(marks)}]+[^\\W_]*)*")


def tokenize_text(text: str) -> list[str]:
    """Return the words of a text for retrieval: case-folded, width-normalised, CJK as bigrams."""
    # Most documents are ASCII, and the slow rules below do not apply to them.
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = _OPTIONAL_DIACRITICS.sub("", unicodedata.normalize("NFKC", text).casefold())
    words: list[str] = []
    for word in _any_word().findall(text):
        words.extend(_split_cjk(word))
    return words


def text_length(text: str) -> int:
    """Count the words between spaces, as papers do; Chinese, Japanese and Korean text by pairs of characters."""
    return sum(len(tokenize_text(word)) if _CJK_RUN.search(word) else 1 for word in text.split())


def _split_cjk(word: str) -> Iterator[str]:
    """Yield CJK runs of a word as bigrams, or as one character, and the other parts as they are."""
    position = 0
    for run in _CJK_RUN.finditer(word):
        if run.start() > position:
            yield word[position : run.start()]
        characters = run.group()
        # A single character has no bigram and would be lost.
        if len(characters) == 1:
            yield characters
        for bigram in pairwise(characters):
            yield "".join(bigram)
        position = run.end()
    if position < len(word):
        yield word[position:]


def find_terms(query: str, text: str, *, language: str = "en") -> list[tuple[int, int]]:
    """Return the spans of the query's terms in the text, in order: words with the same stem, and CJK bigrams.

    Stop words and single letters are not terms.
    """
    stop = _ENGLISH_STOP_WORDS | _STOP_WORDS.get(language, frozenset())
    stem = Stemmer.Stemmer(language).stemWord if language in _STEMMED else str
    stems, pairs = set[str](), set[str]()
    # Scripts without spaces have no words to stem and are matched by bigrams.
    for word in tokenize_text(query):
        if _CJK_RUN.match(word):
            pairs.add(word)
        elif word not in stop and (len(word) > 1 or word.isdigit()):
            stems.add(stem(word))
    alike: dict[str, bool] = {}
    spans = []
    for match in _any_word().finditer(text):
        word = match.group()
        # Stemming is the slow part, and a text repeats its words.
        if word not in alike:
            alike[word] = any(stem(token) in stems for token in tokenize_text(word))
        if alike[word]:
            spans.append(match.span())
    for pair in pairs:
        spans += [match.span() for match in re.finditer(re.escape(pair), text)]
    return sorted(spans)


def split_sentences(text: str) -> list[Sentence]:
    """Return the sentences of a text, in order and without overlap; a blank line also ends a sentence."""
    sentences: list[Sentence] = []
    start = 0
    for end in _END.finditer(text):
        if _ends_sentence(text, start, end):
            _append_sentence(sentences, text, start, end.end())
            start = end.end()
    _append_sentence(sentences, text, start, len(text))
    return sentences


def _append_sentence(sentences: list[Sentence], text: str, start: int, end: int) -> None:
    """Append [start, end) without surrounding white space, unless it is empty."""
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        start += len(piece) - len(piece.lstrip())
        sentences.append(Sentence(start, start + len(stripped)))


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    """Return whether a mark ends the sentence: not after an abbreviation or before lower case."""
    mark = end.group()
    # Marks of other scripts are not used in abbreviations and always end a sentence.
    if mark[0] not in ".!?…":
        return True
    before = text[start : end.start()]
    if not before.strip() or before[-1].isspace():
        return bool(before.strip())
    # Before a lower-case letter, the point belongs to an abbreviation that is not in the list.
    if text[end.end() :].lstrip()[:1].islower():
        return False
    if mark != ".":
        return True
    word = before.split()[-1].lstrip("([\"'“‘").casefold()
    initial = len(word) == 1 and word.isalpha() and before.rstrip()[-1:].isupper()
    return word not in _ABBREVIATIONS and not initial


def detect_language(text: str) -> str:
    """Return the BCP 47 code of a text's language, by script, then by common words; by default English."""
    # A few thousand characters suffice; a book would only take longer.
    sample = text[:4000]
    letters = 0 if sample.isascii() else sum(map(str.isalpha, sample))
    for code, script in _SCRIPTS if letters else ():
        # Kana and the Persian letters are rare in texts whose other characters belong to a shared script.
        share = 0.02 if code in {"ja", "fa"} else 0.2
        if len(script.findall(sample)) > share * letters:
            return code
    words = re.findall(r"[^\W\d_]+", sample.casefold())
    counts = {code: sum(map(stop.__contains__, words)) for code, stop in _STOP_WORDS.items()}
    best = max(counts, key=lambda code: (counts[code], code == "en"))
    # English unless another language is clearly ahead: a few borrowed words do not make a text French.
    return best if counts[best] > counts["en"] + len(words) // 50 else "en"


def text_direction(text: str) -> str:
    """Return `rtl` or `ltr`, by the first letter with a direction (as HTML's dir=auto)."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in {"R", "AL"}:
            return "rtl"
        if kind == "L":
            return "ltr"
    return "ltr"
