"""Every option of the recipes' table can be set by the form, the command and a file; its default stands beside it."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandParser

from actions.options import add_arguments, read_arguments
from corpus.errors import BadInput
from tests.training_sets import write_set
from training.jobs.forms import TrainForm
from training.jobs.options import TrainingOptions, read_config
from training.models import Job
from training.recipes.job_folder import JobFolder
from training.recipes.table import TABLE, recipe_options


def parse(*given: str) -> dict[str, Any]:
    parser = CommandParser()
    add_arguments(parser, TrainingOptions, ("recipe",))
    parser.add_argument("--config", type=Path)
    said = vars(parser.parse_args(["prism", "--data", "d", "--base", "tiny:qwen3", *given]))
    return read_arguments(TrainingOptions, said, **read_config(said)).option_values


def form(**given: str) -> TrainForm:
    asked = {"data": "d", "recipe": "prism", "base": "tiny:qwen3", "device": "cpu"}
    return TrainForm(TrainingOptions, {**asked, **given}, sets=[("d", "d")])


@pytest.mark.parametrize("recipe", TABLE)
def test_form_and_command_show_the_default_of_every_option(recipe):
    parser = CommandParser()
    add_arguments(parser, TrainingOptions)
    words = {action.dest: action.help or "" for action in parser._actions}
    shown_fields = form(recipe=recipe).fields
    for name, default in asdict(recipe_options(recipe, {})).items():
        if name != "preset":
            words_of = {None: "-", "": "-", **({True: "yes", False: "no"} if isinstance(default, bool) else {})}
            shown = words_of.get(default, str(default))
            help = str(shown_fields[name].help_text)
            assert help.removesuffix(".") in words[name]
            alone = help == f"Default: {shown}."
            assert alone or re.search(rf"[ ,] ?{recipe} {re.escape(shown)}(,|\.$)", help), (name, shown, help)


def test_command_form_and_file_set_the_same_options_and_what_the_command_line_says_wins(tmp_path):
    (tmp_path / "a.toml").write_text('packing = true\nepochs = 3.5\nteacher_prompt = "prism"\n')
    filled = form(recipe="prism-extend", packing="true", epochs="3.5", teacher_prompt="prism")
    assert filled.is_valid(), filled.errors
    typed = parse("--packing", "--epochs=3.5", "--teacher-prompt=prism")
    for given in (typed, parse("--config", str(tmp_path / "a.toml")), filled.options.option_values):
        chosen: Any = recipe_options("prism-extend", given)
        assert (chosen.packing, chosen.epochs, chosen.teacher_prompt) == (True, 3.5, "prism")
    assert parse("--no-packing") == {"packing": False}
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
def test_a_file_that_says_nonsense_is_refused(text, words, tmp_path):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(BadInput, match=words):
        recipe_options("prism", parse("--config", str(tmp_path / "a.toml")))


@pytest.mark.django_db
def test_the_job_keeps_what_the_file_said(tmp_path):
    (tmp_path / "a.toml").write_text("epochs = 3.0\nclip = 0.5\n")
    rows = write_set(tmp_path / "set", queries=5)
    call_command("train", "prism", data=rows, base="tiny:qwen3", out=tmp_path / "out", config=tmp_path / "a.toml")
    job = Job.objects.get()
    assert JobFolder(Path(job.folder)).job["options"] == job.options["options"] == {"epochs": 3.0, "clip": 0.5}
