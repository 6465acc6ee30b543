"""A mail server on this machine that takes every mail and keeps it (RFC 5321, as much as smtplib speaks)."""

import socketserver
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from threading import Thread


@dataclass
class MailServer:
    """Mails that came, each with its envelope's recipients."""

    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)

    def __post_init__(self) -> None:
        mails = self.mails

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.say("220 localhost")
                to: list[str] = []
                while line := self.rfile.readline().decode().strip():
                    word = line.split()[0].upper()
                    if word in ("EHLO", "HELO"):
                        self.say("250 localhost")
                    elif word == "RCPT":
                        to.append(line.partition("<")[2].partition(">")[0])
                        self.say("250 ok")
                    elif word == "DATA":
                        self.say("354 go on")
                        mails.append((to, self.read_mail()))
                        to = []
                        self.say("250 taken")
                    elif word == "QUIT":
                        self.say("221 bye")
                        return
                    else:
                        self.say("250 ok")

            def read_mail(self) -> EmailMessage:
                lines = []
                while (line := self.rfile.readline()) not in (b".\r\n", b""):
                    lines.append(line[1:] if line.startswith(b"..") else line)
                mail = message_from_bytes(b"".join(lines), policy=policy.default)
                assert isinstance(mail, EmailMessage)
                return mail

            def say(self, line: str) -> None:
                self.wfile.write(f"{line}\r\n".encode())

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def environment(self) -> dict[str, str]:
        """What an instance is told about this server."""
        return {"EMAIL_HOST": "127.0.0.1", "EMAIL_PORT": str(self.port), "EMAIL_USE_TLS": "0"}

    def close(self) -> None:
        """No more answers."""
        self.server.shutdown()
        self.server.server_close()
