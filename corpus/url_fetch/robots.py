"""Rules of sites for programs that fetch pages (RFC 9309). They do not apply to a single page that a person names."""

from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from corpus.url_fetch.client import FetchLimits
from corpus.url_fetch.pages import fetch_page
from corpus.url_fetch.problems import NoPage

AGENT = "Quorum"
LIMITS = FetchLimits(bytes=500_000, seconds=10.0)  # RFC 9309, 2.5: a file is read up to 500 KiB or more.


class RobotRules:
    """The rules of sites, each fetched once."""

    def __init__(self) -> None:
        self._sites: dict[str, RobotFileParser] = {}

    def check(self, url: str) -> None:
        """Raise NoPage where the site forbids the page, or its rules cannot be fetched."""
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._sites:
            rules = RobotFileParser()
            try:
                page = fetch_page(urljoin(site, "/robots.txt"), LIMITS)
                rules.parse(page.body.decode("utf-8", "replace").splitlines())
            except NoPage as problem:
                # A site without the file allows everything; a site that fails allows nothing (RFC 9309, 2.3.1).
                is_open = problem.code == "media" or 400 <= int(problem.values.get("status", 0)) < 500
                rules.parse([] if is_open else ["User-agent: *", "Disallow: /"])
            # Known only when read: an unread file would refuse every page.
            self._sites[site] = rules
        if not self._sites[site].can_fetch(AGENT, url):
            raise NoPage("robots", host=parts.hostname or "")
