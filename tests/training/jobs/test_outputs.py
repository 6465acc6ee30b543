"""What a model wrote, measured by rule: every case by hand."""

import pytest

from training.jobs.outputs import measure_outputs
from training.recipes.data import Example

DOCUMENT = "The tower was finished on 12 May 1931 and is 381 metres high; it has 102 floors and many lifts inside."
GOOD = (
    "yes\n<contribution>It gives the height of the tower.</contribution>\n<evidence>It is 381 metres high.</evidence>"
)
WRONG = GOOD.replace("381 metres high", "318 metres, 102 floors")


def words(text):
    """A count that can be checked by eye."""
    return len(text.split())


def test_a_hand_worked_set():
    rows = [Example("how high is the tower", DOCUMENT, "", label) for label in (1, 1, 1, 0, 0, None)]
    texts = [GOOD, WRONG, "no", "no", "no, it does not", "yes"]
    found = measure_outputs(rows, texts, words, words="tiny model, CPU")
    assert found["label_match"] == pytest.approx(4 / 5)  # the third is wrong, the last has no label
    assert found["format"] == pytest.approx((1 + 1 + 1 + 1 + 0 + 0.4) / 6)
    assert found["fidelity"] == pytest.approx((1 + 1 / 2) / 2)
    assert found["language"] == 1.0
    assert found["points"] == [[21, 5], [21, 6]]
    assert found["compression"] == pytest.approx({"p10": 5.1 / 21, "median": 5.5 / 21, "p90": 5.9 / 21})
    assert (found["yes_yes"], found["with_fields"], found["said_yes"], found["labelled"]) == (2, 2, 3, 5)
    assert found["reasons"] == {} and found["words"] == "tiny model, CPU"


def test_a_model_that_writes_nothing_readable_is_measured_as_such():
    found = measure_outputs([Example("q", DOCUMENT, "", 1)], ["the the the"], words)
    assert (found["label_match"], found["format"]) == (0.0, 0.0)
    assert found["fidelity"] is None and found["language"] is None and found["compression"]["median"] is None
    assert set(found["reasons"]) == {"fidelity", "fidelity_prism", "language", "compression"}


def test_evidence_of_a_pair_that_is_not_relevant_counts_for_compression_only():
    found = measure_outputs([Example("q", DOCUMENT, "", 0)], [GOOD], words)
    assert found["points"] == [[21, 5]] and found["with_fields"] == 0 and found["fidelity"] is None
