"""`presets` as the shell sees it: every provider in one table, and each with the block to paste."""

import json
import tomllib
from typing import Any

import pytest
from django.core.management import call_command

from judges.panels import judges_file
from judges.presets import PRESETS


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    code = 0
    try:
        call_command("presets", *arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_every_provider_stands_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    heading, *rows = out.splitlines()
    assert code == 0 and heading.split()[0] == "provider"
    assert [row.split()[0] for row in rows] == list(PRESETS)
    (openai,) = [row for row in rows if row.startswith("openai ")]
    for word in ("json_schema", "up to 20", "OPENAI_API_KEY", "https://api.openai.com/v1"):
        assert word in openai


def test_programs_get_all_that_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--json")
    (found,) = [one for one in json.loads(out)["presets"] if one["name"] == "anthropic"]
    assert found["schema_modes"] == list(PRESETS["anthropic"].schema_modes) and found["key_env"] == "ANTHROPIC_API_KEY"


@pytest.mark.parametrize("name", PRESETS)
def test_its_block_is_one_that_a_judges_file_takes(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = run(capsys, name)
    assert code == 0 and out.startswith(PRESETS[name].title)
    _, printed, _ = run(capsys, name, "--json")
    document: dict[str, Any] = json.loads(printed)
    assert document["block"] in out
    (judge,) = tomllib.loads(document["block"])["judge"]
    assert judge["provider"] == name
    other = '[[judge]]\nname = "other"\nprovider = "openai"\nmodel = "m"\n'
    panel = f'[panel]\ndebate = ["other", "other"]\nensemble = {json.dumps([f"v{n}" for n in range(5)])}\n'
    voters = "".join(other.replace('"other"', f'"v{n}"') for n in range(5))
    read = judges_file.parse(f"{document['block']}\n{other}{voters}{panel}")
    assert read.judges[0].provider == name


def test_an_unknown_one_is_exit_2_and_the_known_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "nobody")
    assert (code, out) == (2, "") and "nobody" in err and "openai, " in err
