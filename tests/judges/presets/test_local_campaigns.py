"""Campaigns at servers that a team runs itself: models that think first, prices that the file says or does not say."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from judges.models import Attempt
from judges.presets import PRESETS
from tests.engine_parts import collection_of, judge, sums_up
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow

pytestmark = pytest.mark.django_db(transaction=True)
MEMBERS = ["a", "b", "v1", "v2", "v3", "v4", "v5"]
FREE = "input_price = 0\noutput_price = 0"
# The first two have thoughts in the text.
ALIKES = ["vllm+inline", "tgi", "litellm", "vllm", "sglang", "llama-cpp", "ollama", "lm-studio", "lm-studio+separate"]
QUICK = ALIKES[:2]


def configure(models: LocalModels, path: Path, alike: str, lines: str) -> None:
    """A panel of seven judges of one model that thinks, taken over from a file without keys."""
    own = f'provider = "{alike.partition("+")[0]}"\nbase_url = "{models.google}/{alike}/v1"\nmodel = "Qwen/Qwen3-8B"'
    tables = [f'[[judge]]\nname = "{name}"\n{own}\n{lines}' for name in MEMBERS]
    panel = f"[panel]\ndebate = {json.dumps(MEMBERS[:2])}\nensemble = {json.dumps(MEMBERS[2:])}"
    (path / "judges.toml").write_text("\n\n".join([*tables, panel]))
    call_command("configure_judges", str(path / "judges.toml"))


@pytest.mark.parametrize("alike", first_slow(ALIKES, 2))
def test_a_thinking_model_judges_a_campaign_without_a_key_and_for_nothing(worker, model_server, tmp_path, alike):
    configure(model_server, tmp_path, alike, FREE)
    thought = 'Somebody would say {"response": "no"} here. '
    model_server.script({"*": {"verdict": "yes", "reasoning": 1800, "thought": thought}})
    pairs = 2 if alike in QUICK else 20
    collection_of(pairs)
    status = judge(check=True).json
    assert (status["labelled"], status["failed"], status["escalated"]) == (pairs, 0, 0) and sums_up(status)
    assert status["calls"] == len(MEMBERS) * pairs, "no answer needed a repair or another try"
    assert status["cost"] == 0 and status["calls_without_price"] == 0
    attempts = Attempt.objects.all()
    assert {(one.outcome, one.verdict, one.reasoning.strip()) for one in attempts} == {("labelled", 1, thought.strip())}
    assert {sent["key"] for sent in model_server.requests()} == {""}


@pytest.mark.parametrize("alike", ["vllm", "ollama"])
def test_a_local_model_costs_nothing_only_where_the_file_says_so(worker, model_server, tmp_path, alike):
    assert PRESETS[alike].local
    configure(model_server, tmp_path, alike, "thinking = false")
    collection_of(1)
    status = judge("--policy", "debate", check=True).json
    assert status["calls_without_price"] == status["calls"] > 0
    assert set(Attempt.objects.values_list("cost", flat=True)) == {None}
