"""Of whom refusals speak, as a table of rows of failures."""

import pytest

from judges.domain.refusals import (
    DOCUMENTS,
    DOCUMENTS_FOR_CONTENT,
    UNUSABLE,
    Failure,
    Meaning,
    is_cleared,
    is_isolated,
    refusal_text,
    refused_documents,
    unusable_row,
    weigh,
)

LIMIT = "host: 400 You have reached your specified API usage limits"


def refused(document: int, words: str = "limit", *, content: bool = False, after: float = 0.0) -> Failure:
    return Failure(document, after, f"host: 400 {words}", "refused", words, content)


def unusable(document: int = 0) -> Failure:
    return Failure(document, 0.0, "it is no JSON", "unparsed")


def row(count: int, words: str = "limit", *, content: bool = False, start: int = 0) -> list[Failure]:
    return [refused(start + n, words, content=content) for n in range(count)]


CALL, TRIAL, ACCOUNT, NONE = Meaning.CALL, Meaning.TRIAL, Meaning.ACCOUNT, Meaning.UNUSABLE
TABLE = [
    ("nothing failed", [], [], CALL),
    ("one refusal", row(1), [], TRIAL),
    ("a few", row(DOCUMENTS - 1), [], TRIAL),
    ("several documents", row(DOCUMENTS), [], ACCOUNT),
    ("the same document again and again", [refused(1)] * (DOCUMENTS + 3), [], TRIAL),
    ("moderation of several", row(DOCUMENTS, content=True), [], TRIAL),
    ("moderation of many", row(DOCUMENTS_FOR_CONTENT, content=True), [], ACCOUNT),
    ("other words between count for themselves", row(4, "a") + row(4, "b", start=9), [], TRIAL),
    ("two reasons in turn", [refused(n, "ab"[n % 2]) for n in range(2 * DOCUMENTS)], [], ACCOUNT),
    ("an answer between, though useless", [*row(5), unusable(), *row(5, start=9)], [], TRIAL),
    ("an answer last", [*row(5), unusable()], [], CALL),
    ("some useless answers", [unusable(n) for n in range(UNUSABLE - 1)], [], CALL),
    ("twenty useless answers", [unusable(n) for n in range(UNUSABLE)], [], NONE),
    ("twenty of one document", [unusable()] * UNUSABLE, [], CALL),
    ("four tries of each of five documents", [unusable(n % 5) for n in range(UNUSABLE)], [], CALL),
    ("a bad answer and a bad repair of each", [unusable(n // 2) for n in range(UNUSABLE)], [], NONE),
    ("twenty refusals, each in other words", [refused(n, f"w{n}") for n in range(UNUSABLE)], [], NONE),
    ("two judges of one account", row(4), [row(4, start=4)], ACCOUNT),
    ("two judges refused the same documents", row(4), [row(4)], TRIAL),
    ("two judges for reasons of their own", row(4, "a"), [row(4, "b", start=4)], TRIAL),
]


@pytest.mark.parametrize(("case", "failures", "beside", "meaning"), TABLE, ids=[case[0] for case in TABLE])
def test_a_refusal_is_of_its_call_until_several_documents_show_that_it_is_not(case, failures, beside, meaning):
    assert weigh(failures, beside) is meaning


def test_answers_clear_failures_and_refused_documents_show_nothing_new() -> None:
    failures = [refused(1, after=100.0), refused(2, after=101.0)]
    assert not is_cleared(failures, 99.0) and not is_cleared(failures, 99.9)
    assert is_cleared(failures, 100.0)
    assert is_cleared([unusable()], 0.0), "any usable answer ends a row of useless ones"
    assert refused_documents([]) == set()
    assert refused_documents([refused(1), refused(2, "other"), refused(3)]) == {1, 3}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("host: 413 body has 130200 bytes", "host: 413 body has 9 bytes"),
        ("403 Team: 0b3a-77, check BIO", "403 Team: 12, check BIO"),
        ("400 request req_011CUt9x: no", "400 request req_7abc: no"),
        ("400 no model 'a'", "400 no model 'b'"),
    ],
)
def test_words_are_the_same_whatever_numbers_and_names_they_hold(first: str, second: str) -> None:
    assert refusal_text(first) == refusal_text(second)


def test_words_of_different_reasons_differ_and_are_never_empty() -> None:
    assert refusal_text("400 flagged") != refusal_text("400 too long")
    assert refusal_text("") and refusal_text("123")


def test_a_usable_answer_ends_a_row_where_it_stands_and_nowhere_else() -> None:
    half = [unusable(n) for n in range(UNUSABLE // 2)]
    assert not unusable_row([*half, None, *half])
    assert not unusable_row([None, *half, None], earlier=half)
    assert len(unusable_row([*half, None, *half, *row(UNUSABLE // 2, content=True), None])) == UNUSABLE
    assert len(unusable_row([*half, None], earlier=half)) == UNUSABLE
    assert not unusable_row([unusable(n % 8) for n in range(UNUSABLE)] + [None]), "of few documents it is the documents"


@pytest.mark.parametrize(
    ("failing_s", "left", "answers", "others", "alone"),
    [
        (1.0, 300, True, True, True),  # others were answered meanwhile
        (1.0, 300, True, False, False),  # an outage in the middle
        (1000.0, 300, True, False, False),
        (3700.0, 300, True, False, True),  # nothing is asked for ever
        (10.0, 5, True, False, False),
        (31.0, 5, True, False, True),  # the last five, and nothing else to ask
        (31.0, 9, True, False, False),
        (1e6, 5, False, False, False),  # an account that never answered: it says so, and waits
    ],
)
def test_a_question_fails_alone_where_others_are_answered_or_none_is_left(failing_s, left, answers, others, alone):
    assert is_isolated(failing_s, 30.0, left, answers=answers, answers_others=others) is alone
