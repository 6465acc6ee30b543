"""Vertex AI with Google's models, by google-genai's client for it."""

from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials

from judges.providers.base import PLACEHOLDER
from judges.providers.google import GoogleProvider
from judges.providers.google_account import GoogleAccount, Place, place_of
from judges.records import Judge


class VertexProvider(GoogleAccount, GoogleProvider):
    """POST <base_url>/v1/projects/<project>/locations/<region>/publishers/google/models/<model>:generateContent."""

    api_version = "v1"

    def place(self, judge: Judge) -> Place:
        """The judge's project and region."""
        return place_of(judge)

    def open_client(self, judge: Judge, options: types.HttpOptions) -> genai.Client:
        """The client of the judge's project and region; one for each pair of them."""
        project, region = place_of(judge)
        credentials = Credentials(token=PLACEHOLDER)  # type: ignore[no-untyped-call]
        return genai.Client(
            vertexai=True, project=project, location=region, credentials=credentials, http_options=options
        )
