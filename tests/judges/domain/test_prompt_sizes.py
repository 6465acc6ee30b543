"""A server that read less than was sent is known by its count of tokens; an honest one never is."""

import pytest

from judges.domain.model_names import is_same_model
from judges.domain.prompt_sizes import RepeatedCounts, is_cut, least_tokens

ENGLISH = "The tides of the sea are caused by the pull of the moon and, to a smaller part, of the sun itself. "
GERMAN = "Donaudampfschifffahrtsgesellschaften transportieren Schwermaschinenbauteile donauabwärts. "
CHINESE = "潮汐主要是由月球的引力引起的，太阳的引力也有较小的作用。"
CODE = "    def read(self, body: dict[str, Any]) -> Reply | None:\n        return self.kept.get(body)\n"
THAI = "น้ำขึ้นน้ำลงเกิดจากแรงดึงดูดของดวงจันทร์"


# Characters of a token of the coarsest vocabularies that are in use, by script: an honest count is at least that.
@pytest.mark.parametrize(
    ("text", "most_characters"),
    [(ENGLISH, 4.4), (GERMAN, 5.5), (CHINESE, 2.2), (CODE, 6.0), (THAI, 2.8), ("-" * 80 + "\n", 40), (" " * 99, 60)],
)
@pytest.mark.parametrize("length", [400, 6_000, 24_000])
def test_an_honest_count_is_never_taken_for_a_cut_prompt(text: str, most_characters: float, length: int) -> None:
    whole = (text * length)[:length]
    assert not is_cut(whole, int(length / most_characters))


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
@pytest.mark.parametrize(("context", "counted"), [(4096, 2050), (4096, 4096), (2048, 1026), (4096, 3584)])
def test_a_long_text_cut_to_a_context_is_known(text: str, context: int, counted: int) -> None:
    assert is_cut((text * 24_000)[:24_000], counted, reserved=512)


def test_one_count_for_prompts_of_different_length_is_where_the_server_cuts() -> None:
    counts = RepeatedCounts()
    short, long = (ENGLISH * 200)[:14_000], (ENGLISH * 200)[:19_000]
    assert not counts.is_cut(short, 3_000)
    assert counts.is_cut(long, 3_000), "19,000 characters are no 3,000 tokens, and the shorter one had as many"
    assert not counts.is_cut((ENGLISH * 200)[:12_500], 2_990)
    counts = RepeatedCounts()
    assert not any(counts.is_cut(ENGLISH * n, 2_000) for n in range(10, 60))
    assert least_tokens("潮" * 24_000) >= 8_000
    assert is_cut("潮汐" * 12_000, 4_098)


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-4.1-mini", "gpt-4.1-mini-2025-04-14", True),
        ("gpt-4.1", "gpt-4.1-mini-2025-04-14", False),
        ("gemini-2.5-pro", "gemini-3.8-flash", False),
        ("models/gemini-2.5-pro", "gemini-2.5-pro", True),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku-20241022", True),
        ("claude-sonnet-4@20250514", "claude-sonnet-4-20250514", True),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5-20250929", True),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-08-06", False),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", True),
        ("llama3.1", "llama3.1:latest", True),
        ("mistral-large-latest", "mistral-large-2411", True),
        ("gemini-flash-latest", "gemini-3.5-flash", False),
        ("qwen3-8b", "qwen3-14b", False),
        ("GPT-4.1-mini", "gpt-4.1-mini", True),
        ("a-model", "", True),
    ],
)
def test_a_dated_alias_is_the_same_model_and_another_family_is_not(asked: str, answered: str, same: bool) -> None:
    assert is_same_model(asked, answered) is same
