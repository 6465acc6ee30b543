"""configure_judges and check_judges as the shell sees them."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from judges.models import JudgeVersion, Panel
from tests.modelserver.fixtures import KEY_ENV, LocalModels

pytestmark = pytest.mark.django_db

JUDGES = ["debater-a", "debater-b", "judge-1", "judge-2", "judge-3", "judge-4", "judge-5"]


def file_of(tmp_path: Path, base_url: str = "http://127.0.0.1:1/v1", **models: str) -> Path:
    """A file with the usual panel; keywords (with _ for -) give single judges another model."""
    lines = []
    for name in JUDGES:
        lines += [
            "[[judge]]",
            f'name = "{name}"',
            'provider = "openai-compatible"',
            f'model = "{models.get(name.replace("-", "_"), "yes")}"',
            f'base_url = "{base_url}"',
            f'api_key_env = "{KEY_ENV}"',
            "input_price = 0.5",
            "output_price = 2",
            "",
        ]
    lines += ["[panel]", f"debate = {json.dumps(JUDGES[:2])}", f"ensemble = {json.dumps(JUDGES[2:])}"]
    path = tmp_path / "judges.toml"
    path.write_text("\n".join(lines))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    """Exit code, JSON document, standard error."""
    code = 0
    try:
        call_command(*arguments, "--json")
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def test_a_file_is_taken_over_and_its_panel_becomes_the_default(tmp_path, capsys):
    code, document, _ = run(capsys, "configure_judges", str(file_of(tmp_path)))
    assert code == 0
    assert [judge["change"] for judge in document["judges"]] == ["new"] * 7
    assert Panel.objects.get(is_default=True).name == "main"
    judge = JudgeVersion.objects.get(name="judge-1")
    assert (judge.provider, judge.input_price, judge.version) == ("openai-compatible", 0.5, 1)
    assert Panel.objects.filter(name="offline").exists()


def test_the_same_file_again_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(file_of(tmp_path))
    run(capsys, "configure_judges", path)
    before = list(JudgeVersion.objects.order_by("id").values()), list(Panel.objects.order_by("id").values())
    code, document, _ = run(capsys, "configure_judges", path)
    assert code == 0
    assert {judge["change"] for judge in document["judges"]} == {"unchanged"}
    assert document["panel"]["change"] == "unchanged"
    after = list(JudgeVersion.objects.order_by("id").values()), list(Panel.objects.order_by("id").values())
    assert after == before


def test_a_changed_judge_is_a_new_version_and_the_others_stay(tmp_path, capsys):
    run(capsys, "configure_judges", str(file_of(tmp_path)))
    old = JudgeVersion.objects.get(name="judge-2")
    _, document, _ = run(capsys, "configure_judges", str(file_of(tmp_path, judge_2="no")))
    assert [judge["name"] for judge in document["judges"] if judge["change"] != "unchanged"] == ["judge-2"]
    old.refresh_from_db()
    new = JudgeVersion.objects.get(name="judge-2", is_current=True)
    assert (old.model, old.is_current, new.model, new.version) == ("yes", False, "no", 2)
    run(capsys, "configure_judges", str(file_of(tmp_path)))
    assert JudgeVersion.objects.get(name="judge-2", is_current=True).version == 3


def test_a_file_with_a_mistake_at_its_end_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path)
    path.write_text(path.read_text().replace('"judge-5"]', '"judge-6"]'))
    code, document, err = run(capsys, "configure_judges", str(path))
    assert (code, document) == (2, None)
    assert all(part in err for part in ("ensemble", '"judge-6"', "not a judge of")) and err.count("\n") == 1
    assert not JudgeVersion.objects.filter(name="judge-1").exists()
    assert Panel.objects.get(is_default=True).name == "offline"


def test_a_missing_file_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "configure_judges", "/nowhere/judges.toml")
    assert code == 2 and "/nowhere/judges.toml" in err and "no such file" in err


def test_every_judge_is_asked_as_it_is_and_once_for_log_probabilities_and_its_price_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model_server: LocalModels
) -> None:
    run(capsys, "configure_judges", str(file_of(tmp_path, model_server.openai, judge_1="other-model")))
    code, document, _ = run(capsys, "check_judges")
    assert code == 0 and document["panel"] == "main"
    assert [judge["name"] for judge in document["judges"]] == JUDGES
    assert all(judge["ok"] for judge in document["judges"])
    assert document["judges"][2]["answered_as"] == "another-model"
    assert document["judges"][0]["price"]["input"] == 0.5 and document["judges"][0]["cost"] > 0
    sent = model_server.requests()
    assert sorted(one["side"] for one in sent) == ["A", "A", "B", "B"] + ["vote"] * 10
    assert {judge["calls"] for judge in document["judges"]} == {2} and document["most_calls"] == len(sent)
    assert {judge["found"]["logprobs"] for judge in document["judges"]} == {3}, "the server makes up three"


BROKEN = [
    ("401", "the key in QUORUM_TEST_KEY is not accepted"),
    ("404", "404 scripted 404"),
    ("500", "500 scripted 500"),
    ("drop", "the connection was closed before an answer came"),
    ("garbage", "does not follow the schema"),
    ("truncated", "raise max_output_tokens"),
    ("refused", "choose another model"),
]


@pytest.mark.parametrize(("fault", "advice"), BROKEN)
def test_a_judge_that_cannot_work_is_named_with_the_reason(tmp_path, capsys, model_server, fault, advice):
    run(capsys, "configure_judges", str(file_of(tmp_path, model_server.openai, judge_3=fault)))
    code, document, err = run(capsys, "check_judges", "--panel", "main")
    assert code == 3 and "1 of 7" in err and "judge-3" in err
    (broken,) = [judge for judge in document["judges"] if not judge["ok"]]
    assert broken["name"] == "judge-3" and advice in broken["problem"]


def test_a_judge_without_the_log_probabilities_that_it_was_asked_for_is_found(tmp_path, capsys, model_server):
    path = file_of(tmp_path, model_server.openai, judge_2="yes+no-logprobs")
    path.write_text(path.read_text().replace("input_price", "logprobs = true\ninput_price"))
    run(capsys, "configure_judges", str(path))
    code, document, err = run(capsys, "check_judges")
    assert code == 3 and "1 of 7" in err and "judge-2" in err
    assert "returned no log-probabilities" in document["judges"][3]["problem"]


def test_the_offline_panel_works_without_any_key(capsys: pytest.CaptureFixture[str]) -> None:
    code, document, _ = run(capsys, "check_judges", "--panel", "offline")
    assert code == 0 and len(document["judges"]) == 7
    assert {judge["cost"] for judge in document["judges"]} == {0.0}


def test_an_unknown_panel_is_exit_2_and_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    code, document, err = run(capsys, "check_judges", "--panel", "nobody")
    assert (code, document) == (2, None) and err.startswith("--panel: ") and "nobody" in err


def test_another_panel_takes_the_default_and_gives_it_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of(tmp_path)
    main = path.read_text()
    run(capsys, "configure_judges", str(path))
    path.write_text(main.replace("[panel]", '[panel]\nname = "second"'))
    _, document, _ = run(capsys, "configure_judges", str(path))
    assert document["panel"] == {"name": "second", "change": "new"}
    assert Panel.objects.get(is_default=True).name == "second"
    path.write_text(main)
    run(capsys, "configure_judges", str(path))
    assert Panel.objects.get(is_default=True).name == "main"
    assert set(Panel.objects.values_list("name", flat=True)) == {"offline", "main", "second"}
    assert JudgeVersion.objects.filter(name="judge-1").count() == 1
