"""Contribution and evidence measured by rule: hand-worked cases (Prism 5.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.evidence import measures
from corpus.evidence.measures import DIMENSIONS, EvidenceTarget, Malformed, measure_target
from judges.domain import evidence_quality as quality

GOOD = "<contribution>It states the boiling point.</contribution>\n<evidence>Water boils at 100 °C.</evidence>"
DOCUMENT = "On 12 May 2021 Anna Berg measured that water boils at 100.5 °C, 3% above the 1,200 earlier readings."


@pytest.mark.parametrize(
    ("output", "score"),
    [
        ("no", 1.0),
        (" no\n", 1.0),
        ("no, it does not", 0.0),
        (f"no\n{GOOD}", 0.0),
        ("yes", 0.4),
        ("yes\n<contribution>1234567890</contribution>", 0.4),
        ("yes\n<contribution>12345678901</contribution>", 0.7),
        ("yes\n<evidence>12345678901</evidence>", 0.7),
        ("yes\n<contribution>12345678901</contribution>\n<evidence>short</evidence>", 0.7),
        ("yes\n<contribution>never closed, though long enough", 0.4),
        ("yes\n<contribution>one of them</contribution><contribution>and another</contribution>", 0.4),
        (f"yes\n{GOOD}", 1.0),
        (f"yes {GOOD}", 1.0),
        ("yesterday", 0.0),
        ("Yes", 0.0),
        ("", 0.0),
    ],
)
def test_the_format_score_of_every_branch(output: str, score: float) -> None:
    assert measures.format_score(output) == score


def test_an_output_is_read_into_verdict_and_fields() -> None:
    output = measures.parse_output(f"yes\n{GOOD}")
    assert (output.verdict, output.target) == (1, measures.parse_target(GOOD))
    assert measures.parse_output("no") == measures.EvidenceOutput(0, None, None, "")
    assert measures.parse_output("perhaps").verdict is None
    assert measures.parse_output("yes\n<contribution>only this one</contribution>").target is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD.replace("\n", ""), "does not match"),
        (GOOD.replace("\n", "\n\n"), "does not match"),
        (f"yes\n{GOOD}", "does not match"),
        (f"{GOOD}\nand more", "does not match"),
        ("<evidence>first</evidence>\n<contribution>second</contribution>", "does not match"),
        ("<contribution> </contribution>\n<evidence>something</evidence>", "the contribution is empty"),
        ("<contribution>a</contribution>\n<evidence>b<evidence>c</evidence>", "one of the tags"),
    ],
)
def test_a_target_is_both_fields_in_order_or_nothing(text: str, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        measures.parse_target(text)


words = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1).filter(lambda text: text.strip())


@given(words, words)
def test_what_is_written_is_read_back(contribution: str, text: str) -> None:
    target = EvidenceTarget(contribution.strip(), text.strip())
    if any(tag in f"{contribution} {text}" for tag in measures.TAGS):
        with pytest.raises(Malformed):
            measures.check_target(contribution, text)
        return
    assert measures.parse_target(target.text) == target
    assert measures.format_score(f"yes\n{target.text}") >= 0.4


@given(st.text())
def test_any_text_has_a_score(text: str) -> None:
    assert measures.format_score(text) in (0.0, 0.4, 0.7, 1.0)
    for entity in measures.pattern_entities(text):
        assert entity in text


def test_dates_percentages_and_numbers_are_entities_each_once() -> None:
    text = "On 12 May 2021 (2021-05-12) 3.5% of 1,200 died; 40 percent and 1,200 again. May 3, 2020. 于2017年6月有35%。"
    assert measures.pattern_entities(text) == (
        "12 May 2021", "2021-05-12", "3.5%", "1,200", "40 percent", "May 3, 2020", "2017年6月", "35%",
    )  # fmt: skip


def test_fidelity_is_the_share_of_entities_that_stand_in_the_document() -> None:
    """Of six, two are not there: 100 is part of 100.5, and nobody is called Berger."""
    text = "On 12 May 2021 Anna Berger found 100 °C, 100.5, 3% and 1,200."
    named = ["Anna Berger", "not in the text"]
    found = measure_target(EvidenceTarget("It.", text), query="?", document=DOCUMENT, model_entities=named)
    assert set(found.entities) == {"12 May 2021", "100", "100.5", "3%", "1,200", "Anna Berger"}
    assert set(found.missing) == {"100", "Anna Berger"}
    assert found.altered == ("100",)
    assert found.fidelity == pytest.approx(4 / 6)
    assert measures.entity_fidelity(["100"], DOCUMENT, whole=False) == 1.0, "the paper takes any substring"
    assert measures.entity_fidelity([], DOCUMENT) is None, "nothing to divide by is no 0 and no 1"


GERMAN = "Der Hund ist nicht in dem Haus, und die Katze sitzt auf dem Baum mit den Vögeln. " * 4
ENGLISH = "The dog is not in the house, and the cat sits on the tree with the birds of this town. " * 4
CHINESE = "水在海平面的沸点是一百摄氏度，高山上沸点更低，因为气压比较小。" * 5


@pytest.mark.parametrize(
    ("document", "query", "language"),
    [
        (GERMAN, "Where is the dog?", "de"),
        (CHINESE, "When does water boil?", "zh"),
        (GERMAN + ENGLISH, "Wo ist der Hund und wo die Katze?", "de"),
        (GERMAN + CHINESE, "Where is the dog of the house?", "en"),
    ],
)
def test_the_language_is_the_documents_and_the_querys_where_it_has_several(
    document: str, query: str, language: str
) -> None:
    assert measures.expected_language(document, query) == language


def test_a_text_in_another_language_does_not_fit_and_terms_do_not_count() -> None:
    assert set(measures.detect_languages(GERMAN + ENGLISH)) == {"de", "en"}
    assert not measures.language_fits(ENGLISH, GERMAN, "de")
    assert measures.language_fits("Hund, Katze, Vögeln", GERMAN, "de"), "its words are the document's"
    assert measures.language_fits("Transformer 使用位置编码，例如 RoPE。", CHINESE, "zh")


def test_compression_is_tokens_of_evidence_over_tokens_of_document() -> None:
    assert measures.compression_ratio("one two", "one two three") == pytest.approx(2 / 3)
    assert measures.compression_ratio("one", "") is None
    values = [0.1 * n for n in range(1, 12)]
    assert measures.summary_quantiles(values) == {
        "p10": pytest.approx(0.2), "median": pytest.approx(0.6), "p90": pytest.approx(1.0),
    }  # fmt: skip
    assert measures.summary_quantiles([]) == {"p10": None, "median": None, "p90": None}


SCORES = dict.fromkeys(DIMENSIONS, 5)


def measured(text: str, contribution: str = "It says when.", document: str = DOCUMENT) -> measures.EvidenceMeasures:
    return measure_target(EvidenceTarget(contribution, text), query="?", document=document)


def test_rules_cap_what_a_judge_overlooks() -> None:
    altered = measured("Water boils at 101 °C, he found.")
    assert quality.cap_scores(SCORES, altered)["evidence_faithfulness"] == 1
    assert quality.cap_scores(SCORES, measured(DOCUMENT)) == {**SCORES, "evidence_concision": 3}
    foreign = measured("The cat is in the house of the dog.", document=GERMAN)
    assert quality.cap_scores(SCORES, foreign)["language"] == 1
    assert quality.cap_scores(SCORES, measured("It boils.")) == SCORES


def test_problems_are_said_in_words() -> None:
    rules = measured("Water boils at 101 °C.", "It is. It was.")
    told = " / ".join(quality.find_problems(rules, {**SCORES, "contribution_coverage": 2}))
    assert "2 sentences" in told and "“101”" in told and "(2 of 5)" in told
    fine = measured("Water boils at 100.5 °C.", "It gives the boiling point.")
    assert quality.find_problems(fine, SCORES) == ()
