"""Every option of the recipes' table can be set by the form, the command and a file; its default stands beside it."""

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from corpus.errors import BadInput
from tests.stages import first_quick
from tests.training.recipes.test_bundles import row, write
from tests.training_sets import write_set
from training.jobs.folder import JobFolder
from training.jobs.forms import TrainForm
from training.jobs.options import TrainingOptions, read_config
from training.models import Job
from training.recipes.table import CHOICES, LOSSES, PACKED, TABLE, recipe_options


def parse(*given: str) -> dict[str, Any]:
    parser = CommandParser()
    add_arguments(parser, TrainingOptions, ("recipe",))
    parser.add_argument("--config", type=Path)
    said = vars(parser.parse_args(["prism", "--data", "d", "--base", "tiny:qwen3", *given]))
    return read_arguments(TrainingOptions, said, **read_config(said)).given


def form(**given: str) -> TrainForm:
    asked = {"data": "d", "recipe": "prism", "base": "tiny:qwen3", "device": "cpu"}
    return TrainForm(TrainingOptions, {**asked, **given}, sets=[("d", "d")])


# Values that the rules below do not find: names, bounds, what must divide or fit.
OTHERS: dict[str, Any] = {
    "max_steps": 7, "evaluate_every": 7, "checkpoint_every": 7, "warmup_ratio": 0.25, "gradient_checkpointing": True,
    "lora_targets": "q_proj,v_proj", "query_prefix": "Find: ", "pooling": "cls", "reward": "ndcg",
    "grpo_reduction": "token", "teacher_prompt": "prism",
}  # fmt: skip


def choose_other(recipe: str, name: str, default: Any) -> Any:
    """A value of an option that is not its default and that the recipe takes; the default where there is no other."""
    choices = LOSSES[recipe] if name == "loss" else CHOICES.get(name, ())
    if choices:
        return next((one for one in choices if one != default), default)
    if name in OTHERS or name == "teacher":
        return OTHERS.get(name, default)
    if isinstance(default, bool):
        return not default if name != "packing" or recipe in PACKED else default
    if name == "max_length":
        return default // 2
    return default / 2 if isinstance(default, float) and default else type(default)(default * 2 or 1)


def type_in(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("recipe", first_quick(list(TABLE)))
def test_every_option_of_every_recipe_is_set_by_command_form_and_file_and_shows_its_default(
    recipe: str, tmp_path: Path
) -> None:
    paper = TABLE[recipe]["paper"]
    parser = CommandParser()
    add_arguments(parser, TrainingOptions)
    words = {action.dest: action.help or "" for action in parser._actions}
    changed = 0
    for name in (field.name for field in fields(paper) if field.name != "preset"):
        default = getattr(paper, name)
        value = choose_other(recipe, name, default)
        changed += value != default
        flag = "--" + name.replace("_", "-")
        typed = [flag if value else f"--no-{flag[2:]}"] if isinstance(value, bool) else [f"{flag}={value}"]
        assert getattr(recipe_options(recipe, parse(*typed)), name) == value, name
        (tmp_path / "a.toml").write_text(f"{name} = {json.dumps(value)}\n")
        assert getattr(recipe_options(recipe, parse("--config", str(tmp_path / "a.toml"))), name) == value, name
        base = "tiny:encoder" if recipe == "cross-encoder" else "tiny:qwen3"
        filled = form(recipe=recipe, base=base, preset="paper", **{name: type_in(value)})
        assert filled.is_valid(), (name, filled.errors)
        assert getattr(recipe_options(recipe, filled.options.given), name) == value, name
        shown = "-" if default in (None, "") else {True: "yes", False: "no"}.get(default, str(default)) \
            if isinstance(default, bool) else str(default)  # fmt: skip
        help = str(filled.fields[name].help_text)
        assert help.removesuffix(".") in words[name]
        alone = help == f"Default: {shown}."
        assert alone or re.search(rf"[ ,] ?{recipe} {re.escape(shown)}(,|\.$)", help), (name, shown, help)
    # What has one value alone: packing where nothing packs, a teacher, a loss of one kind.
    assert changed >= len(fields(paper)) - 4


def test_a_file_holds_options_and_what_the_command_line_says_wins(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('batch = 4\nwarmup_ratio = 0.1\npacking = true\nlora_targets = "q_proj"\n')
    given = parse("--config", str(tmp_path / "a.toml"), "--batch", "2")
    assert given == {"batch": 2, "warmup_ratio": 0.1, "packing": True, "lora_targets": "q_proj"}
    assert recipe_options("prism", given).batch == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("batch = ", "this is not TOML at its end"), ('batch = "4"', "batch must be a whole number, not '4'"),
        ("packing = 1", "packing must be true or false"), ("bach = 1", "no such option"),
        ("seed = true", "seed must be a whole number"), ("dev_share = 0.0", "dev_share must be above 0"),
    ],
)  # fmt: skip
def test_a_file_that_says_nonsense_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(BadInput, match=words):
        recipe_options("prism", parse("--config", str(tmp_path / "a.toml")))


@pytest.mark.django_db
def test_the_command_reads_each_recipes_own_format(tmp_path: Path) -> None:
    bundles = write(tmp_path / "bundles", [row(1)])
    call_command("train", "rtriever", data=bundles, base="tiny:qwen3", out=tmp_path / "out", preset="tiny")
    assert Job.objects.get().options["recipe"] == "rtriever"
    rows = write_set(tmp_path / "set", queries=5)
    with pytest.raises(SystemExit) as refused:
        call_command("train", "rtriever", data=rows, base="tiny:qwen3", out=tmp_path / "out")
    assert refused.value.code == 2 and Job.objects.count() == 1


@pytest.mark.django_db
def test_the_job_keeps_what_the_file_said(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("epochs = 3.0\nclip = 0.5\n")
    rows = write_set(tmp_path / "set", queries=5)
    call_command("train", "prism", data=rows, base="tiny:qwen3", out=tmp_path / "out", config=tmp_path / "a.toml")
    job = Job.objects.get()
    assert JobFolder(Path(job.folder)).job["options"] == job.options["options"] == {"epochs": 3.0, "clip": 0.5}
