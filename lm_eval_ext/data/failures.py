"""What an exception of the network libraries means to a person, and whether to try again."""

import socket
import ssl
from collections.abc import Iterator
from http import HTTPStatus

_FIRST_SERVER_ERROR = 500


class TransferError(Exception):
    """One failed attempt: what happened, and whether a second attempt may help."""

    def __init__(self, what: str, *, again: bool = False) -> None:
        super().__init__(what)
        self.again = again


def incomplete(arrived: int, size: int) -> TransferError:
    """Returns the failure of a body that ended early (both numbers in bytes)."""
    return TransferError(f"{arrived:,} of {size:,} bytes arrived", again=True)


def explain(error: Exception, *, arrived: int, size: int, timeout_s: float) -> TransferError:
    """Translates an exception of requests, urllib3 or the socket library.

    Nothing that the server wrote (reason phrases, bodies, redirect targets) is repeated.

    Args:
        error: What the download raised.
        arrived: Bytes that were written before.
        size: Bytes that the file should have.
        timeout_s: Seconds that the connection and each silence may last.
    """
    import requests
    import urllib3

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return _status(error.response.status_code)
    after = f" after {arrived:,} of {size:,} bytes" if arrived else ""
    kinds = requests.exceptions
    # The first that fits counts: a refused connection may look like a timeout from outside.
    meanings: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
        ((kinds.ProxyError,), "the proxy gives no connection (HTTP_PROXY, HTTPS_PROXY)"),
        ((ConnectionRefusedError,), "connection refused"),
        ((socket.gaierror,), "the host name is not known"),
        (
            (ssl.SSLError, kinds.SSLError),
            "no secure connection (TLS error or certificate not accepted)",
        ),
        (
            (kinds.Timeout, urllib3.exceptions.TimeoutError, TimeoutError),
            f"no answer within {timeout_s:g} s{after}",
        ),
        (
            (kinds.InvalidURL, kinds.InvalidSchema, kinds.TooManyRedirects),
            "no legal URL, or it redirects to none",
        ),
    )
    chain = tuple(_chain(error))
    for types, meaning in meanings:
        if any(isinstance(link, types) for link in chain):
            return TransferError(meaning)
    if isinstance(error, kinds.ConnectionError | kinds.ChunkedEncodingError):
        # urllib3 drops the last, partly filled chunk, but says how far it had come.
        partial = [
            link.partial for link in chain if isinstance(link, urllib3.exceptions.IncompleteRead)
        ]
        return incomplete(max([arrived, *partial]), size)
    return TransferError(f"the transfer failed ({type(error).__name__})")


def _status(code: int) -> TransferError:
    # The phrase comes from the standard's table, not from the server, who may write anything.
    try:
        phrase = f" ({HTTPStatus(code).phrase})"
    except ValueError:
        phrase = ""
    return TransferError(f"HTTP {code}{phrase}", again=code >= _FIRST_SERVER_ERROR)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and all that it wraps: as cause, context, reason or argument."""
    seen: set[int] = set()
    waiting: list[object] = [error]
    while waiting:
        link = waiting.pop()
        if not isinstance(link, BaseException) or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__, getattr(link, "reason", None), *link.args]
