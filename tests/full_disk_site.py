"""python -m tests.full_disk_site FOLDER: a served site whose disk is full for a while. Prints one JSON line.

Run it by `unshare -m`: VAR is a tmpfs that only this mount namespace sees, so no other disk is touched.
"""

import contextlib
import json
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.full_disk import SIZE_MB, fill, free
from tests.instances import Instance, until

SCENE = """
from api.tokens import make_token
from tests.factories import *
books = make_collection("books")
owner = make_user("olga", is_owner=True)
print("TOKEN", make_token(owner, None, name="n", scopes=["read", "manage"], days=1)[1])
"""
WRITES = 12


def ask(address: str, method: str, path: str, token: str = "", body: Any = None) -> dict[str, Any]:
    """Status, media type and what the answer says."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} if token else {}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return {"status": answer.status, "type": answer.headers.get("Content-Type", ""), "text": text}


def main(folder: Path) -> None:
    """Serve, fill the disk, write and back up; give room, and do so again."""
    var = folder / "var"
    var.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(var)], check=True)
    instance = Instance(var, QUORUM_WEB_PROCESSES="1")
    seen: dict[str, Any] = {}
    try:
        site = instance.start("manage.py", "serve", "--port", "0", "--judge-workers", "0")
        address = json.loads(site.stdout.readline() if site.stdout else "")["url"]
        done = instance.manage("shell", "-v0", "-c", SCENE)
        token = done.stdout.split("TOKEN ")[-1].strip()
        invite = (
            "POST",
            "/api/v1/collections/books/invitations",
            token,
            {"people": [f"Bob {number:060}" for number in range(40)]},
        )
        seen["before"] = ask(address, "GET", "/readyz")
        backups = var / "backups"
        backups.mkdir(exist_ok=True)
        ballast = fill(var)
        writes = []
        for _ in range(WRITES):
            with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
                file.write(b"\0" * free(var))  # whatever the services gave back is taken, too
            writes.append(ask(address, *invite))
        seen["writes"] = writes
        seen["full"] = ask(address, "GET", "/readyz")
        backup = instance.manage("backup", str(backups / "b.tar"))
        left = sorted(path.name for path in backups.iterdir())
        seen["backup"] = {"code": backup.returncode, "error": backup.stderr, "left": left}
        ballast.unlink()
        until(lambda: ask(address, "GET", "/readyz")["status"] == 200, "ready again", seconds=60)
        until(lambda: ask(address, *invite)["status"] == 201, "writes again", seconds=60)
        backup = instance.manage("backup", str(backups / "b.tar"))
        seen["after"] = {"code": backup.returncode, "error": backup.stderr}
    finally:
        instance.end()
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
