"""Machines that share a database and a store, and no folder: in one process by turns, or each with processes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Turn = Callable[[str], Path]

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
BUCKET = "quorum"


@pytest.fixture
def turn_to(settings: Any, tmp_path: Path) -> Turn:
    """`turn_to("a")` makes this process one of machine A, whose VAR it returns; all share one folder as their store."""
    settings.STORE = f"file://{tmp_path / 'store'}"

    def turn(name: str) -> Path:
        settings.VAR = tmp_path / name
        settings.VAR.mkdir(exist_ok=True)
        return tmp_path / name

    return turn


@contextmanager
def serve_s3() -> Iterator[dict[str, str]]:
    """An S3 server with an empty bucket; yields the environment in which QUORUM_STORE is a folder of it."""
    import boto3
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        variables = {**KEYS, "AWS_ENDPOINT_URL": address}
        named = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=address, **named).create_bucket(Bucket=BUCKET)
        yield {**variables, "QUORUM_STORE": f"s3://{BUCKET}/instance"}
    finally:
        server.stop()
        S3FileSystem.clear_instance_cache()  # it would ask this server in the next test


def on_machine(environment: dict[str, str], var: Path) -> dict[str, str]:
    """The environment of a process on the machine whose VAR this is."""
    var.mkdir(parents=True, exist_ok=True)
    return {**os.environ, **environment, "QUORUM_VAR": str(var)}
