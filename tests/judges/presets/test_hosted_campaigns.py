"""Thinking models of hosted presets judge campaigns: their thoughts are kept, and no answer is cut or asked again."""

import json
from pathlib import Path

import pytest
from django.core.management import call_command

from judges.models import Attempt, JudgeVersion
from judges.presets import PRESETS
from tests.engine_parts import _standing_worker, collection_of, judge, sums_up, worker
from tests.modelserver.fixtures import KEY_ENV, LocalModels
from tests.modelserver.presets import LOOK_ALIKES

__all__ = ["_standing_worker", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)
WEEKLY = pytest.mark.weekly
MEMBERS = ["a", "b", "v1", "v2", "v3", "v4", "v5"]
FAILURES = ("refused", "unparsed", "truncated", "out_of_range", "error")
THINKERS = {
    "deepseek": 'model = "deepseek-v4-flash"',
    "qwen": 'model = "qwen-plus"\nthinking = true',
    "mistral": 'model = "magistral-medium-2509"',
    "xai": 'model = "grok-4.3"',
    "groq": 'model = "openai/gpt-oss-120b"',
    "together": 'model = "openai/gpt-oss-120b"',
    "fireworks": 'model = "accounts/fireworks/models/gpt-oss-120b"',
    "openrouter": 'model = "deepseek/deepseek-r1"',
}


def configure(models: LocalModels, path: Path, preset: str, lines: str) -> None:
    """A panel of seven judges of one model, taken over from a file."""
    home = f"{models.google}/{preset}{LOOK_ALIKES[preset].home}"
    own = f'provider = "{preset}"\nbase_url = "{home}"\napi_key_env = "{KEY_ENV}"\ninput_price = 1\noutput_price = 2'
    tables = [f'[[judge]]\nname = "{name}"\n{own}\n{lines}' for name in MEMBERS]
    panel = f"[panel]\ndebate = {json.dumps(MEMBERS[:2])}\nensemble = {json.dumps(MEMBERS[2:])}"
    (path / "judges.toml").write_text("\n\n".join([*tables, panel]))
    call_command("configure_judges", str(path / "judges.toml"))


def judged(models: LocalModels, path: Path, preset: str, lines: str, pairs: int, thoughts: int = 0) -> None:
    """So many pairs, by debate and by votes: each has its label, and no answer was of no use."""
    configure(models, path, preset, lines)
    models.script({"*": {"verdict": "yes", "reasoning": thoughts}})
    collection_of(pairs)
    status = judge(check=True).json
    assert (status["labelled"], status["failed"], status["escalated"]) == (pairs, 0, 0) and sums_up(status)
    assert status["calls"] == len(MEMBERS) * pairs, "no answer needed a repair or another try"
    assert not Attempt.objects.exclude(error="").exists() and not Attempt.objects.filter(outcome__in=FAILURES).exists()
    assert {request["status"] for request in models.requests()} == {200}
    modes = {one.parameters.get("schema_mode", "json_schema") for one in JudgeVersion.objects.filter(provider=preset)}
    known = PRESETS[preset]
    assert modes == {(thoughts and known.thinking_schema_mode) or known.schema_mode}


QUICK = ("qwen", "mistral")
"""Thoughts in a stream, and as a part of the answer's content; the others follow once a week."""


@pytest.mark.parametrize("preset", [name if name in QUICK else pytest.param(name, marks=WEEKLY) for name in THINKERS])
def test_a_thinking_model_judges_a_campaign(
    worker: object, model_server: LocalModels, tmp_path: Path, preset: str
) -> None:
    judged(model_server, tmp_path, preset, THINKERS[preset], 2 if preset in QUICK else 20, 900)
    shown = preset != "xai"
    assert Attempt.objects.exclude(reasoning="").count() == (Attempt.objects.count() if shown else 0)
