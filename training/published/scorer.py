"""Scoring of pairs with a model folder: a model trained here, another causal reranker, or an encoder."""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.errors import BadInput, BadOption
from training.published.protocol import NEW_TOKENS, ServingRequest
from training.published.publication import describe_setup
from training.recipes import rendering
from training.recipes.calibration import Calibration
from training.recipes.rendering import RenderedPair, RerankPrompt

if TYPE_CHECKING:
    from training.published.margins import PromptTokens
    from training.published.tokens import EncodedRow

PRECISIONS = ("auto", "fp32", "tf32", "bf16")
# Tokens of one forward pass. More do not help on a CPU, since documents of similar length need little padding.
BUDGETS = {"cpu": 1536, "cuda": 16_384}
OWN_TEMPLATE, NO_PROMPT = "its own template", "no prompt"


class Score(NamedTuple):
    """A pair's margin (l_yes - l_no, or an encoder's logit) in fp32, and whether its document was cut."""

    margin: float
    is_cut: bool = False


def read_reranker_json(folder: Path) -> dict[str, Any]:
    """Return the record reranker.json of a published model, {} for a base. Raises BadInput for an unknown prompt."""
    path = folder / "reranker.json"
    if not path.exists():
        return {}
    try:
        record: dict[str, Any] = json.loads(path.read_text())
    except ValueError:
        raise BadInput(f"{path.name} is not JSON: train or copy the model again") from None
    # Calibration and threshold were fitted on scores with this prompt, and even another space would change the
    # scores, so the text must be equal byte for byte.
    if record.get("kind") == "causal" and recorded_prompt(record) is None:
        raise other_prompt(folder, record, rendering.QUORUM.sha256)
    return record


def other_prompt(folder: Path, record: dict[str, Any], ours: str) -> BadInput:
    """Return the error for a model that was trained with a prompt that this version does not have."""
    prompts = f"sha256 {str(record.get('prompt_sha256'))[:12]}, ours is {ours[:12]}"
    return BadInput(
        f"{folder.name} was trained with another prompt ({prompts}): score it with the version of Quorum that "
        "trained it, or train it again"
    )


def recorded_prompt(record: dict[str, Any]) -> RerankPrompt | None:
    """Return the prompt whose text and hash are in a model's record, or None if it is not one of PROMPTS."""
    recorded = (record.get("prompt"), record.get("prompt_sha256"))
    return next((prompt for prompt in rendering.PROMPTS.values() if (prompt.text, prompt.sha256) == recorded), None)


def choose_prompt(folder: Path, name: str = "", option: str = "prompt") -> str:
    """Return the name of a causal model's prompt: that of its training, its own template, or else `name`.

    Raises BadOption, for the option called `option`, if none of them is known: scores with a guessed prompt would be
    meaningless.
    """
    prompt = recorded_prompt(read_reranker_json(folder))
    if prompt is not None:
        return prompt.name
    path, template = folder / "chat_template.jinja", ""
    if path.exists():
        template = path.read_text(encoding="utf-8")
    elif (path := folder / "tokenizer_config.json").exists():
        template = str(json.loads(path.read_text()).get("chat_template") or "")
    # Templates of rerankers contain both roles, those of chat models do not.
    if all(f'"{role}"' in template or f"'{role}'" in template for role in ("query", "document")):
        return OWN_TEMPLATE
    if name in rendering.PROMPTS:
        return name
    # Tiny models were made here, with a vocabulary from our own prompt.
    if json.loads((folder / "config.json").read_text()).get("quorum_tiny"):
        return rendering.QUORUM.name
    raise BadOption(
        option,
        f"{folder.name} says nowhere how it is asked about a pair (no reranker.json, and no template with the roles "
        f"query and document): choose one of {', '.join(rendering.PROMPTS)}.",
    )


def choose_seq2seq(folder: Path, name: str = "") -> str:
    """Return the name of a sequence-to-sequence model's prompt. Raises BadOption unless `name` is one."""
    if name not in rendering.SEQ2SEQ_ANSWERS:
        names = " or ".join(rendering.SEQ2SEQ_ANSWERS)
        raise BadOption(
            "prompt", f"{folder.name} is a sequence-to-sequence model and does not say what it answers: use {names}."
        )
    return name


def make_prompt(folder: Path, tokenizer: Any, name: str) -> "PromptTokens":
    """Return a causal model's prompt of this name (from choose_prompt), with its answer tokens and maximum length."""
    from transformers import AutoConfig

    from training.published.base import answer_ids, longest_prompt
    from training.published.causal import chat_messages
    from training.published.margins import PromptTokens

    def render_template(query: str, document: str, instruction: str) -> str:
        """Render a pair by the model's own chat template, whose roles CrossEncoder gives a pair."""
        return str(tokenizer.apply_chat_template(chat_messages(query, document, instruction), tokenize=False))

    record = read_reranker_json(folder)
    path = folder / "1_LogitScore" / "config.json"
    # Rerankers that were not trained here have their answer tokens in this module.
    if not record and path.exists():
        config = json.loads(path.read_text())
        yes_id, no_id = int(config["true_token_id"]), int(config["false_token_id"])
    else:
        yes_id, no_id = answer_ids(tokenizer)
    length = int(record.get("max_length") or longest_prompt(tokenizer, AutoConfig.from_pretrained(folder)))
    render = render_template if name == OWN_TEMPLATE else rendering.PROMPTS[name].render
    return PromptTokens(render, yes_id, no_id, length)


def check_prompt(folder: Path, prompt: str = "") -> None:
    """Raise BadInput if a model has no known prompt, or a different one from `prompt`."""
    config = json.loads((folder / "config.json").read_text())
    names = config.get("architectures") or []
    if read_reranker_json(folder).get("kind") == "encoder" or any(map(is_classifier, names)):
        name = NO_PROMPT
    elif is_seq2seq(config):
        name = choose_seq2seq(folder, prompt)
    else:
        name = choose_prompt(folder, prompt)
    if prompt and name != prompt:
        raise BadOption("prompt", f"{folder.name} is asked by {name}: leave this out.")


def is_classifier(architecture: str) -> bool:
    """Return whether a model of this architecture has a classification head."""
    return architecture.endswith("ForSequenceClassification")


def is_seq2seq(config: dict[str, Any]) -> bool:
    """Return whether a model has an encoder and a decoder."""
    return bool(config.get("is_encoder_decoder"))


class Scorer(ABC):
    """A model that scores documents. Any thread may encode requests, one scores them."""

    prompt_name = NO_PROMPT  # The name of a prompt, OWN_TEMPLATE or NO_PROMPT.
    middle = 0.0  # The margin at which a document is as likely relevant as not.

    def __init__(
        self, folder: Path, record: dict[str, Any], config: dict[str, Any], device: str, precision: str, prompt: str
    ) -> None:
        from training.published.base import choose_precision

        self.folder, self.device = folder, device
        self.precision = choose_precision(precision, device)
        # The label of its setup for figures, such as "tiny model, CPU".
        self.words = describe_setup(bool(config.get("quorum_tiny") or record.get("tiny")), device, self.precision)
        calibration = record.get("calibration") or {}
        self.calibration = Calibration(a=calibration.get("a", 1.0), b=calibration.get("b", 0.0))
        self.threshold = float(record.get("threshold", 0.5))  # The probability above which a document is relevant.
        self.budget = BUDGETS.get(device.split(":")[0], BUDGETS["cuda"])
        self.lock = threading.Lock()  # A tokenizer may be used by one thread at a time.
        self.load(record, prompt)

    def load(self, record: dict[str, Any], prompt: str) -> None:
        """Load the folder's model and tokenizer. `record`: reranker.json; `prompt`: the option's name, or ""."""
        raise NotImplementedError

    @abstractmethod
    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        """Return a row of tokens for each document."""

    @abstractmethod
    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        """Return the margins of rows, in order; they may belong to several requests."""

    def write(self, request: ServingRequest, max_new_tokens: int = NEW_TOKENS) -> list[RenderedPair]:
        """Return the text that the model writes for each document, "" for models that do not write."""
        return [RenderedPair("") for _ in request.documents]

    def score(self, requests: Sequence[ServingRequest], together: int = 0) -> list[list[Score]]:
        """Return the scores of requests, in order, scoring `together` pairs at a time (0: all)."""
        encoded = [self.encode(request) for request in requests]
        all_rows = [row for rows in encoded for row in rows]
        size = together or max(1, len(all_rows))
        margins = (
            margin
            for begin in range(0, len(all_rows), size)
            for margin in self.score_rows(all_rows[begin : begin + size])
        )
        return [[Score(next(margins), row.is_cut) for row in rows] for rows in encoded]

    def margins(self, query: str, documents: Sequence[str], instruction: str = "", together: int = 0) -> list[float]:
        """Return the raw fp32 margins of documents, in order; `together` as in `score`."""
        (scores,) = self.score([ServingRequest(query, documents, instruction)], together)
        return [score.margin for score in scores]

    def own_probability(self, margin: float) -> float:
        """Return the model's own, uncalibrated probability of "relevant" for a margin."""
        return Calibration().probability(margin - self.middle)

    def probability(self, margin: float) -> float:
        """Return the calibrated probability of "relevant" for a margin."""
        return self.calibration.probability(margin - self.middle)

    def describe_margins(self, margins: Sequence[float]) -> str:
        """Return a note about these margins, or ""."""
        return ""


class CausalScorer(Scorer):
    """A causal model, with the prompt of its training."""

    def load(self, record: dict[str, Any], prompt: str) -> None:
        from training.published.base import check_causal, load_tokenizer
        from training.published.causal import load_causal
        from training.published.margins import AnswerHead
        from training.published.prefixed import can_share

        self.shares = can_share(check_causal(self.folder))
        self.tokenizer = load_tokenizer(self.folder)
        self.prompt_name = choose_prompt(self.folder, prompt)
        self.prompt = make_prompt(self.folder, self.tokenizer, self.prompt_name)
        self.model = load_causal(self.folder, self.device, self.precision)
        self.head = AnswerHead(self.model, self.prompt.yes_id, self.prompt.no_id)

    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        rows = [(request.query, document, request.instruction) for document in request.documents]
        with self.lock:
            return self.prompt.encode(self.tokenizer, rows, document_tokens=request.document_tokens)

    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        from training.published.margins import causal_margins
        from training.published.prefixed import prefixed_margins

        return (prefixed_margins if self.shares else causal_margins)(self.head, rows, self.budget)

    def write(self, request: ServingRequest, max_new_tokens: int = NEW_TOKENS) -> list[RenderedPair]:
        from training.published.margins import generate_answers

        rows = self.encode(request)
        return generate_answers(self.model, self.tokenizer, rows, max_new_tokens=max_new_tokens)


class EncoderScorer(Scorer):
    """A sequence classifier with one logit, which takes no instruction and writes no text."""

    def load(self, record: dict[str, Any], prompt: str) -> None:
        from training.published.base import load_tokenizer
        from training.published.encoder import load_encoder, longest_input

        self.tokenizer = load_tokenizer(self.folder)
        self.model = load_encoder(self.folder, self.device, precision=self.precision)
        self.length = longest_input(self.folder, self.tokenizer, record.get("max_length"))

    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        from training.published.margins import encode_pairs

        pairs = [(request.query, document) for document in request.documents]
        with self.lock:
            return encode_pairs(self.tokenizer, pairs, max_length=self.length, document_tokens=request.document_tokens)

    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        from training.published.margins import score_encoded

        return score_encoded(self.model, self.tokenizer, rows)
