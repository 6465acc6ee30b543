"""How sure a model was: P(s) over the tokens of a score, P(yes) and P(no) of a vote (ERank 3.2)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.domain.ensemble import nearest_to_mean
from judges.domain.probabilities import answer_probabilities
from judges.providers.replies import read_tokens
from judges.records import Token


def tokens(*words: tuple[str, float]) -> tuple[Token, ...]:
    return tuple(Token(word, math.log(p)) for word, p in words)


def test_the_share_of_a_score_is_that_of_its_own_tokens():
    text = '{"reason": "All of it.", "score": 10}'
    found = tokens(('{"reason": "All of it.", "score": ', 0.5), ("1", 0.8), ("0", 0.6), ("}", 0.9))
    shares = answer_probabilities(text, found, 1, 10)
    assert shares == {"10": pytest.approx(0.8 * 0.6)}
    text = '{"reason": "10 words.", "score": 1}'
    found = tokens(('{"reason": "10 words.", "score":', 0.5), (" 1", 0.3), ("}", 0.9))
    assert answer_probabilities(text, found, 0, 1) == {"1": pytest.approx(0.3)}
    text = '{"reason": "\\"score\\": 9", "score": 2}'
    found = tokens(('{"reason": "\\"score\\": ', 0.9), ("9", 0.1), ('", "score": ', 0.9), ("2", 0.7), ("}", 1.0))
    assert answer_probabilities(text, found, 0, 2) == {"2": pytest.approx(0.7)}
    text = '{"score": 3}'
    assert answer_probabilities(text, (), 1, 3) is None
    assert answer_probabilities(text, tokens(('{"score": ', 1.0), ("3", 0.5)), 1, 3) is None
    assert answer_probabilities(text, (Token(text, math.log(0.5)),), 1, 2) is None


def test_a_vote_has_both_shares_where_the_other_word_is_among_the_alternatives():
    text = '{"response": "yes"}'
    others = {"yes": math.log(0.7), "no": math.log(0.2), '"no': math.log(0.05), "maybe": math.log(0.01)}
    found = (Token('{"response": "', -0.1), Token("yes", math.log(0.7), others), Token('"}', 0.0))
    assert answer_probabilities(text, found, 1, None) == {"yes": pytest.approx(0.7), "no": pytest.approx(0.25)}
    joined = {'no"}': math.log(0.2), 'yes"}': math.log(0.7)}
    found = (Token('{"response": "', -0.1), Token('yes"}', math.log(0.7), joined))
    assert answer_probabilities(text, found, 1, None) == {"yes": pytest.approx(0.7), "no": pytest.approx(0.2)}


@pytest.mark.parametrize(
    ("others", "left"),
    [({}, 0.3), ({"yes": 0.7}, 0.3), ({"yes": 0.7, "maybe": 0.2, "Perhaps": 0.06}, 0.04), ({"yes": 0.7, "x": 0.3}, 0)],
)
def test_an_answer_that_is_not_listed_has_at_most_what_the_listed_ones_leave(others, left):
    text = '{"response": "yes"}'
    listed = {word: math.log(share) for word, share in others.items()}
    found = (Token('{"response": "', -0.1), Token("yes", math.log(0.7), listed), Token('"}', 0.0))
    assert answer_probabilities(text, found, 1, None) == {"yes": pytest.approx(0.7), "no": pytest.approx(left)}


def test_an_answer_that_is_not_listed_is_no_likelier_than_the_least_listed_one():
    """llama.cpp lists what the model would have said without the schema: most of it is neither yes nor no."""
    text = '{"response": "yes"}'
    listed = {word: math.log(share) for word, share in {"The": 0.3, "Yes": 0.1, "A": 0.05}.items()}
    found = (Token('{"response": "', -0.1), Token("yes", math.log(0.02), listed), Token('"}', 0.0))
    assert answer_probabilities(text, found, 1, None) == {"yes": pytest.approx(0.02), "no": pytest.approx(0.05)}


def entries(*words: str | bytes) -> list[dict[str, object]]:
    """Entries of an answer's log-probabilities as OpenAI has them; bytes are a part of a character."""
    return [
        {"token": word if isinstance(word, str) else repr(word), "logprob": -0.1, "bytes": list(raw)}
        for word in words
        for raw in [word.encode() if isinstance(word, str) else word]
    ]


@pytest.mark.parametrize(
    ("around", "words"),
    [
        (
            "a fence, as llama.cpp's grammar allows",
            ["```", "json", "\n", "{", '"response": "', "yes", '"}\n', "```", ""],
        ),
        (
            "thoughts, as vLLM counts them",
            ["<think>", '{"response": "yes"}', "?</think>", '{"response": "', "yes", '"}'],
        ),
    ],
)
def test_tokens_around_an_answer_that_the_server_took_out_are_left_out(around: str, words: list[str]) -> None:
    text = '{"response": "yes"}'
    tokens = read_tokens(text, entries(*words), "token", "logprob", [])
    assert "".join(token.text for token in tokens) == text
    assert answer_probabilities(text, tokens, 1, None) == {
        "yes": pytest.approx(math.exp(-0.1)),
        "no": pytest.approx(1 - math.exp(-0.1)),
    }


def test_a_character_of_several_tokens_is_put_together_from_their_bytes() -> None:
    text = '{"reason": "𠮷", "response": "no"}'
    first, second = "𠮷".encode()[:3], "𠮷".encode()[3:]
    tokens = read_tokens(
        text, entries('{"reason": "', first, second, '", "response": "', "no", '"}'), "token", "logprob", []
    )
    assert answer_probabilities(text, tokens, 0, None) is not None
    for wrong in ([300], ["a"], [1.5]):
        assert read_tokens("no", [{"token": "no", "logprob": -0.1, "bytes": wrong}], "token", "logprob", [])


@given(st.integers(0, 10), st.lists(st.integers(1, 7), min_size=1, max_size=12), st.text(max_size=12))
def test_however_a_text_is_cut_the_share_is_that_of_the_pieces_with_digits(score, cuts, reason):
    import json

    text = json.dumps({"reason": reason, "score": score}, ensure_ascii=False)
    pieces, at = [], 0
    while at < len(text):
        size = cuts[len(pieces) % len(cuts)]
        pieces.append(text[at : at + size])
        at += size
    start = text.rindex(str(score))
    at, expected = 0, 0.0
    for piece in pieces:
        if at < start + len(str(score)) and at + len(piece) > start:
            expected += math.log(0.9)
        at += len(piece)
    shares = answer_probabilities(text, tuple(Token(piece, math.log(0.9)) for piece in pieces), 1, score)
    assert shares == {str(score): pytest.approx(math.exp(expected))}


def test_the_generation_nearest_to_the_mean_is_kept_and_the_first_of_equals():
    assert nearest_to_mean([0, 5, 10]) == 1
    assert nearest_to_mean([2, 9, 9]) == 1  # mean 6.67: 9 is 2.33 away, 2 is 4.67
    assert nearest_to_mean([4, 6]) == 0
    assert nearest_to_mean([None, 3, None]) == 1
    assert nearest_to_mean([None, None]) is None
