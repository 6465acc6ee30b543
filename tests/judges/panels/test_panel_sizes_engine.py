"""Panels through the engine: one model alone and sampled five times (docs/index.md), and a judge that was changed."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from annotation.agreement.grade_matrix import known_assessors, load_grade_matrix
from annotation.exports.sets.source import SetSource, read_votes
from config.env import ROOT
from corpus.models import Collection, Pair
from judges.models import Attempt, Campaign
from tests.engine_parts import collection_of, judge, pairs_of, sums_up
from tests.factories import make_user
from tests.judges.panels.test_configure_judges import file_of
from tests.modelserver.fixtures import KEY_ENV, LocalModels

PAIRS = 4
START = (ROOT / "docs" / "index.md").read_text()
EXPORT = re.findall(r"manage.py (export mine --format prism .*--out) set$", START, re.MULTILINE)[0]
(ONE_JUDGE,) = re.findall(r"single judge decided, use\s+`(--teacher \w+)`", START)
"""How the first page has a set made for training, and what to give instead where one judge decides."""


def blocks() -> tuple[dict[str, str], str]:
    """The judges files of the first page: one judge by its scale, and five samples of one."""
    section = START.partition("## Five lines for one judge")[2].partition("\n## ")[0]
    alone, sampled = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    scales = ["0-3", *re.findall(r'`scale = "(.+?)"`', section)]
    return {scale: alone.replace('"0-3"', f'"{scale}"') for scale in scales}, sampled


def configure(models: LocalModels, folder: Path, text: str) -> None:
    """Load the file as it is, with the local server in OpenAI's place."""
    place = f'provider = "openai"\nbase_url = "{models.openai}"\napi_key_env = "{KEY_ENV}"'
    file = folder / "judges.toml"
    file.write_text(text.replace('provider = "openai"', place))
    call_command("configure_judges", str(file))


@pytest.mark.parametrize(("scale", "grade"), [("0-3", 3), ("0-10", 10), ("binary", None)])
def test_one_judge_in_five_lines_labels_every_pair(worker, model_server, tmp_path, scale, grade):
    alone = blocks()[0][scale]
    assert len(alone.strip().splitlines()) == 5
    collection = collection_of(PAIRS)
    configure(model_server, tmp_path, alone)
    model_server.script({"*": {"verdict": "yes"}})
    status = judge(check=True).json
    assert (status["policy"], status["labelled"], status["calls"], status["failed"]) == ("single", PAIRS, PAIRS, 0)
    assert status["labels"] == {"1": PAIRS} and sums_up(status)
    assert {vote.score for vote in Attempt.objects.all()} == {grade}
    taught = EXPORT.replace("export mine", f"export {collection.name}").replace("--teacher votes", ONE_JUDGE)
    call_command(*taught.split(), str(tmp_path / "set"), "--allow-incomplete")
    assert (tmp_path / "set").is_dir()
    status = judge("--policy", "ensemble", check=True).json  # a panel of one
    assert (status["policy"], status["labelled"], status["calls"], status["calls_cached"]) == (
        "ensemble",
        PAIRS,
        0,
        PAIRS,
    )


def test_one_model_sampled_five_times_labels_by_a_majority_of_three(worker, model_server, tmp_path):
    collection = collection_of(PAIRS)
    configure(model_server, tmp_path, blocks()[1])
    first, second = "mapping number 0 ", "mapping number 1 "
    model_server.script(
        {
            "*": [
                {"contains": first, "verdict": "no", "times": 2},  # 3 to 2: relevant
                {"contains": second, "verdict": "no", "times": 3},  # 2 to 3: not relevant
                {"verdict": "yes"},
            ]
        }
    )
    status = judge(check=True).json
    assert (status["policy"], status["labelled"], status["calls"]) == ("ensemble", PAIRS, 5 * PAIRS)
    assert status["labels"] == {"0": 1, "1": PAIRS - 1}
    campaign = Campaign.objects.get()
    assert campaign.majority == 3 and len(campaign.voters) == 5 and len(set(campaign.voters)) == 1
    rows = Attempt.objects.values_list("pair", "place", "cache_key", "cached")
    assert len({key for _, _, key, _ in rows}) == 5 * PAIRS and not any(cached for *_, cached in rows)
    assert Counter(place for _, place, *_ in rows) == dict.fromkeys(range(5), PAIRS)
    sent = Counter(json.dumps(request["user"]) for request in model_server.requests())
    assert set(sent.values()) == {5}, "each pair is asked five times in the same words"

    known = known_assessors(collection)
    assert [one.name for one in known if one.kind == "judge"] == [f"judge #{number}" for number in range(1, 6)]
    grades = load_grade_matrix(collection, known).grades
    assert grades.shape[0] == 5 + sum(one.kind != "judge" for one in known)
    pair = pairs_of(collection)[0].pk
    said = read_votes([pair])[pair]
    assert (len(said), sum(said.values())) == (5, 3)
    assert set(SetSource(collection).judges.values()) == {f"judge #{number}" for number in range(1, 6)}

    again = judge("--again", check=True).json
    assert (again["labelled"], again["calls"], again["calls_cached"]) == (PAIRS, 0, 5 * PAIRS)
    assert again["labels"] == status["labels"], "the cache keeps the samples apart"


def test_samples_go_on_where_they_were_after_a_budget(worker, model_server, tmp_path):
    collection_of(PAIRS)
    configure(model_server, tmp_path, blocks()[1])
    model_server.script({"*": {"verdict": "yes"}})
    stopped = judge("--max-calls", 7)
    assert stopped.code == 3 and stopped.json["calls"] == 7
    status = judge("--max-calls", 100, check=True).json
    assert (status["labelled"], status["calls"]) == (PAIRS, 5 * PAIRS), "no sample is asked twice, and none is left out"
    assert len(model_server.requests()) == 5 * PAIRS


def test_samples_go_through_a_batch_as_calls_of_their_own(worker, model_server, tmp_path):
    collection_of(PAIRS)
    configure(model_server, tmp_path, blocks()[1])
    model_server.batches(delay=0.0)
    model_server.script({"*": [{"contains": "mapping number 0 ", "verdict": "no", "times": 3}, {"verdict": "yes"}]})
    status = judge("--batch", check=True).json
    assert (status["labelled"], status["calls"]) == (PAIRS, 5 * PAIRS)
    assert status["labels"] == {"0": 1, "1": PAIRS - 1}


def section_of(page: str, attempt: Attempt) -> str:
    """The part of the pair's page that belongs to one attempt."""
    return page.split(f'id="attempt-{attempt.pk}"')[1].split("</details>")[0]


def judged_by_judge_1() -> Attempt:
    judge("--policy", "single", "--judges", "judge-1", check=True)
    # Worker processes reserve ids in blocks: the newest row is that of the newest campaign, not of the largest id.
    return Attempt.objects.order_by("campaign").last()


def test_a_changed_judge_is_a_new_version_and_old_pages_show_the_old_prompt(worker, model_server, manage, tmp_path):
    collection_of(1)
    base_url = model_server.base_url("openai-compatible")
    Collection.objects.update(instruction="Only passages about tides are relevant.")
    call_command("configure_judges", str(file_of(tmp_path, base_url)))
    old = judged_by_judge_1()

    call_command("configure_judges", str(file_of(tmp_path, base_url, judge_1="no")))
    Collection.objects.update(instruction="Only passages about the moon are relevant.")
    new = judged_by_judge_1()

    assert (old.judge.version, old.verdict, new.judge.version, new.verdict) == (1, 1, 2, 0)
    client = Client()
    client.force_login(make_user("olga", is_owner=True))
    page = client.get(f"/c/books/pairs/{Pair.objects.get().pk}/").text
    before, after = section_of(page, old), section_of(page, new)
    assert "judge-1@1, openai-compatible, yes" in before and "judge-1@2, openai-compatible, no" in after
    assert "about tides" in before and "about the moon" not in before
    assert "about the moon" in after and "about tides" not in after
