"""Amazon Bedrock: Anthropic's messages by the SDK's own client, which signs each request (Signature Version 4).

The keys are those that AWS's own tools find: the variables (or secret files) AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, a profile, or a role of the machine. A Bedrock API key (AWS_BEARER_TOKEN_BEDROCK), if set, is
sent instead.
"""

import asyncio
import logging
from typing import Any

import boto3
from anthropic import AsyncAnthropicBedrock, DefaultAioHttpClient
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError

from corpus.collections.secrets import read_secret
from judges.errors import Refused
from judges.providers.anthropic import AnthropicProvider
from judges.providers.base import PLACEHOLDER
from judges.records import Judge, ModelRequest

API_KEY = "AWS_BEARER_TOKEN_BEDROCK"
# The version of the Messages API. The client's newer default fails for models before Claude 4.7 (ADR 0060).
VERSION = "bedrock-2023-05-31"
# At level DEBUG botocore would log what it signs, including session tokens.
logging.getLogger("botocore.auth").setLevel(logging.INFO)


class BedrockProvider(AnthropicProvider):
    """Provider for Amazon Bedrock: POST <base_url>/model/<model>/invoke."""

    key_header = "Authorization"
    key_prefix = "Bearer "

    def open_client(self, judge: Judge) -> AsyncAnthropicBedrock:
        """Return the client, which takes the model from the body into the address, and signs."""
        self.key_env = self.key_env or (API_KEY if read_secret(API_KEY) else "")
        self.region = str(judge.parameters["region"])
        self.session: boto3.Session | None = None
        return AsyncAnthropicBedrock(
            aws_region=self.region,
            api_key=PLACEHOLDER if self.key_env else None,
            base_url=self.base_url,
            **self.client_options(DefaultAioHttpClient),
        )

    async def authorized(self, judge: Judge) -> dict[str, str]:
        """Return the header with a Bedrock API key; without one, set the keys that the SDK signs with."""
        headers = await super().authorized(judge)
        if headers:
            self.client.api_key = headers["Authorization"].removeprefix(self.key_prefix)
        else:
            keys = await asyncio.to_thread(self.keys)
            client = self.client
            client.aws_access_key, client.aws_secret_key = keys.access_key, keys.secret_key
            client.aws_session_token = keys.token
        return headers

    def shown_key(self) -> str:
        return super().shown_key() if self.key_env else "the credentials of AWS"

    def keys(self) -> Credentials:
        """Return the current credentials for signing. Raises Refused if there are none."""
        access_key, secret_key = read_secret("AWS_ACCESS_KEY_ID"), read_secret("AWS_SECRET_ACCESS_KEY")
        if access_key and secret_key:
            return Credentials(access_key, secret_key, read_secret("AWS_SESSION_TOKEN") or None)
        try:
            self.session = self.session or boto3.Session(region_name=self.region)
            credentials = self.session.get_credentials()
            signing_keys = credentials.get_frozen_credentials() if credentials is not None else None
        except BotoCoreError:
            raise Refused(f"{self.host}: no credentials of AWS can be had: {ADVICE}") from None
        if signing_keys is None:
            raise Refused(f"{self.host}: there are no credentials of AWS: {ADVICE}")
        return Credentials(signing_keys.access_key, signing_keys.secret_key, signing_keys.token)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        return {"anthropic_version": VERSION, **super().body(request)}


ADVICE = (
    f"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or {API_KEY} where the workers run, or give the "
    "machine a role"
)
