"""configure_judges and check_judges as the shell sees them."""

import json
from pathlib import Path
from typing import Any

import pytest

from judges.models import JudgeVersion, Panel
from tests.called import call
from tests.modelserver.fixtures import KEY_ENV, LocalModels

pytestmark = pytest.mark.django_db

JUDGES = ["debater-a", "debater-b", "judge-1", "judge-2", "judge-3", "judge-4", "judge-5"]


def file_of(tmp_path: Path, base_url: str = "http://127.0.0.1:1/v1", **models: str) -> Path:
    """A file with the usual panel; keywords (with _ for -) give single judges another model."""
    lines = []
    for name in JUDGES:
        model = models.get(name.replace("-", "_"), "yes")
        lines += ["[[judge]]", f'name = "{name}"', 'provider = "openai-compatible"', f'model = "{model}"']
        lines += [f'base_url = "{base_url}"', f'api_key_env = "{KEY_ENV}"', "input_price = 0.5", "output_price = 2"]
    lines += ["[panel]", f"debate = {json.dumps(JUDGES[:2])}", f"ensemble = {json.dumps(JUDGES[2:])}"]
    path = tmp_path / "judges.toml"
    path.write_text("\n".join(lines))
    return path


def run(*arguments: str) -> tuple[int, Any, str]:
    """Exit code, JSON document, standard error."""
    done = call(*arguments, "--json")
    return done.code, done.json if done.out else None, done.err


def rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What is stored of judges and panels."""
    return list(JudgeVersion.objects.order_by("id").values()), list(Panel.objects.order_by("id").values())


def test_a_file_is_taken_over_and_the_same_file_again_changes_nothing(tmp_path: Path) -> None:
    path = str(file_of(tmp_path))
    code, document, _ = run("configure_judges", path)
    assert code == 0
    assert [judge["change"] for judge in document["judges"]] == ["new"] * 7
    assert Panel.objects.get(is_default=True).name == "main"
    judge = JudgeVersion.objects.get(name="judge-1")
    assert (judge.provider, judge.input_price, judge.version) == ("openai-compatible", 0.5, 1)
    assert Panel.objects.filter(name="offline").exists()
    before = rows()
    code, document, _ = run("configure_judges", path)
    assert code == 0
    assert {judge["change"] for judge in document["judges"]} == {document["panel"]["change"]} == {"unchanged"}
    assert rows() == before


def test_a_changed_judge_is_a_new_version_and_the_others_stay(tmp_path: Path) -> None:
    run("configure_judges", str(file_of(tmp_path)))
    old = JudgeVersion.objects.get(name="judge-2")
    _, document, _ = run("configure_judges", str(file_of(tmp_path, judge_2="no")))
    assert [judge["name"] for judge in document["judges"] if judge["change"] != "unchanged"] == ["judge-2"]
    old.refresh_from_db()
    new = JudgeVersion.objects.get(name="judge-2", is_current=True)
    assert (old.model, old.is_current, new.model, new.version) == ("yes", False, "no", 2)
    run("configure_judges", str(file_of(tmp_path)))
    assert JudgeVersion.objects.get(name="judge-2", is_current=True).version == 3


def test_what_cannot_be_taken_is_exit_2_and_leaves_nothing(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    path.write_text(path.read_text().replace('"judge-5"]', '"judge-6"]'))
    for arguments, words in (
        (("configure_judges", str(path)), ("ensemble", '"judge-6"', "not a judge of")),
        (("configure_judges", "/nowhere/judges.toml"), ("/nowhere/judges.toml", "no such file")),
        (("check_judges", "--panel", "nobody"), ("--panel: ", "nobody")),
    ):
        code, document, err = run(*arguments)
        assert (code, document) == (2, None)
        assert all(part in err for part in words) and err.count("\n") <= 1
    assert not JudgeVersion.objects.filter(name="judge-1").exists()
    assert Panel.objects.get(is_default=True).name == "offline"


def test_every_judge_is_asked_as_it_is_and_once_for_log_probabilities_and_its_price_said(tmp_path, model_server):
    run("configure_judges", str(file_of(tmp_path, model_server.openai, judge_1="other-model")))
    code, document, _ = run("check_judges")
    assert code == 0 and document["panel"] == "main"
    assert [judge["name"] for judge in document["judges"]] == JUDGES
    assert all(judge["ok"] for judge in document["judges"])
    assert document["judges"][2]["answered_as"] == "another-model"
    assert document["judges"][0]["price"]["input"] == 0.5 and document["judges"][0]["cost"] > 0
    sent = model_server.requests()
    assert sorted(one["side"] for one in sent) == ["A", "A", "B", "B"] + ["vote"] * 10
    assert {judge["calls"] for judge in document["judges"]} == {2} and document["most_calls"] == len(sent)
    assert {judge["found"]["logprobs"] for judge in document["judges"]} == {3}, "the server makes up three"


def test_judges_that_cannot_work_are_named_with_the_reason(tmp_path: Path, model_server: LocalModels) -> None:
    advice = {
        "judge-1": ("404", "404 scripted 404"),
        "judge-2": ("truncated", "raise max_output_tokens"),
        "judge-3": ("401", "the key in QUORUM_TEST_KEY is not accepted"),
        "judge-4": ("refused", "choose another model"),
        "judge-5": ("drop", "the connection was closed before an answer came"),
    }
    models = {name.replace("-", "_"): fault for name, (fault, _) in advice.items()}
    run("configure_judges", str(file_of(tmp_path, model_server.openai, **models)))
    code, document, err = run("check_judges", "--panel", "main")
    broken = {judge["name"]: judge["problem"] for judge in document["judges"] if not judge["ok"]}
    assert code == 3 and "5 of 7" in err and broken.keys() == advice.keys()
    for name, (_, words) in advice.items():
        assert name in err and words in broken[name]


def test_the_offline_panel_works_without_any_key() -> None:
    code, document, _ = run("check_judges", "--panel", "offline")
    assert code == 0 and len(document["judges"]) == 7
    assert {judge["cost"] for judge in document["judges"]} == {0.0}


def test_another_panel_takes_the_default_and_gives_it_back(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    main = path.read_text()
    run("configure_judges", str(path))
    path.write_text(main.replace("[panel]", '[panel]\nname = "second"'))
    _, document, _ = run("configure_judges", str(path))
    assert document["panel"] == {"name": "second", "change": "new"}
    assert Panel.objects.get(is_default=True).name == "second"
    path.write_text(main)
    run("configure_judges", str(path))
    assert Panel.objects.get(is_default=True).name == "main"
    assert set(Panel.objects.values_list("name", flat=True)) == {"offline", "main", "second"}
    assert JudgeVersion.objects.filter(name="judge-1").count() == 1
