"""Words that the messages of this package share: every message is one line."""

from urllib.parse import urlsplit, urlunsplit

_HASH_DIGITS_SHOWN = 12


def short_hash(digest: str) -> str:
    """Returns the first digits of a hash: enough to compare by eye."""
    return f"{digest[:_HASH_DIGITS_SHOWN]}…"


def wrong_checksum(got: str, expected: str) -> str:
    """Returns the clause that compares two SHA-256 digests."""
    return f"wrong checksum: got {short_hash(got)} expected {short_hash(expected)}"


def shown_url(url: str) -> str:
    """Returns the URL without user name, password and query: they may be secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def fetch_remedy(source: str) -> str:
    """Returns what to do when a file could not be downloaded."""
    return (
        f"Check the connection and run `lm-eval-ext data fetch {source}` again, or set "
        "LM_EVAL_EXT_MIRROR to the URL of a mirror or LM_EVAL_EXT_DATA to a local copy."
    )
