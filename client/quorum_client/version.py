"""The version of the client: that of the Quorum it is made for."""

VERSION = "0.1.0"
