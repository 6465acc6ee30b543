"""The version of the client, which is that of Quorum."""

VERSION = "0.1.0"
