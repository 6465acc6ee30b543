"""Look-alikes of OpenAI, Azure OpenAI, Anthropic, Amazon Bedrock, Google AI and Vertex AI."""

from tests.modelserver.presets.base import LookAlike
from tests.modelserver.presets.claude import ANTHROPIC, BEDROCK_CLAUDE
from tests.modelserver.presets.gemini import GOOGLE, VERTEX_ANTHROPIC, VERTEX_GEMINI
from tests.modelserver.presets.openai import AZURE_OPENAI, OPENAI, RESPONSES

NATIVE: tuple[LookAlike, ...] = (
    OPENAI,
    RESPONSES,
    AZURE_OPENAI,
    ANTHROPIC,
    BEDROCK_CLAUDE,
    GOOGLE,
    VERTEX_GEMINI,
    VERTEX_ANTHROPIC,
)
