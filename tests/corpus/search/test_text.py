"""Words, sentences, language and direction in English, Chinese and Arabic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.search.text import detect_language, split_sentences, text_direction, tokenize_text


def cut(text):
    return [text[s.start : s.end] for s in split_sentences(text)]


def test_words_are_case_folded_and_without_punctuation():
    assert tokenize_text("The dict's KEYS: 3.5, foo_bar!") == ["the", "dict", "s", "keys", "3", "5", "foo", "bar"]
    assert tokenize_text("Straße ＡＢＣ cafe\u0301 café") == ["strasse", "abc", "café", "café"]


def test_chinese_japanese_and_korean_are_bigrams():
    assert tokenize_text("我们去公园 ok") == ["我们", "们去", "去公", "公园", "ok"]
    assert tokenize_text("犬") == ["犬"]
    assert tokenize_text("Python语言3版") == ["python", "语言", "3", "版"]
    assert tokenize_text("한국어") == ["한국", "국어"]


def test_arabic_words_are_the_same_with_and_without_vowels_and_words_of_indic_scripts_stay_whole():
    assert tokenize_text("كِتَابٌ") == tokenize_text("كتاب") == ["كتاب"]
    assert tokenize_text("हिन्दी भाषा") == ["हिन्दी", "भाषा"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("It works. Does it? Yes!", ["It works.", "Does it?", "Yes!"]),
        ("Dr. Li et al. did (e.g. in U.S. law). Good.", ["Dr. Li et al. did (e.g. in U.S. law).", "Good."]),
        ("Version 3.5 is out. J. Smith wrote it.", ["Version 3.5 is out.", "J. Smith wrote it."]),
        ('"Really?" Yes.', ['"Really?"', "Yes."]),
        ("a wing in a stream .\n  an experiment .", ["a wing in a stream .", "an experiment ."]),
        ("A title\n\nA body\nin two lines. End", ["A title", "A body\nin two lines.", "End"]),
        ("今天天气好。我们去公园！“好吗？”他说。", ["今天天气好。", "我们去公园！", "“好吗？”", "他说。"]),
        ("هذا نص. هل تفهم؟ نعم.", ["هذا نص.", "هل تفهم؟", "نعم."]),
        ("", []),
    ],
)
def test_sentences_of_english_chinese_and_arabic(text, parts):
    assert cut(text) == parts


@given(st.text(alphabet="ab .!?。\n\t\"'A)", max_size=80))
def test_sentences_are_in_order_and_lose_nothing_but_white_space(text):
    found = split_sentences(text)
    at = 0
    for sentence in found:
        assert at <= sentence.start < sentence.end <= len(text)
        assert not text[at : sentence.start].strip()
        piece = text[sentence.start : sentence.end]
        assert piece == piece.strip()
        at = sentence.end
    assert not text[at:].strip()


@pytest.mark.parametrize(
    ("text", "code", "side"),
    [
        ("The mapping of the keys is in the table.", "en", "ltr"),
        ("今天天气好。", "zh", "ltr"),
        ("今日はいい天気です。", "ja", "ltr"),
        ("هذا نص قصير", "ar", "rtl"),
        ("Der Hund und die Katze sind nicht auf dem Tisch.", "de", "ltr"),
        ("Это короткий текст", "ru", "ltr"),
        ("12 34", "en", "ltr"),
        ("", "en", "ltr"),
    ],
)
def test_language_and_direction(text, code, side):
    assert (detect_language(text), text_direction(text)) == (code, side)
