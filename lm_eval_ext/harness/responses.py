"""Responses as files can hold them."""

from collections.abc import Iterable

from lm_eval.api.instance import Instance


def escape_half_pairs(instances: Iterable[Instance]) -> None:
    r"""Replace half a surrogate pair in a response by its escape, such as ``\ud83d``.

    A model that generates bytes may write one. No file in UTF-8 can hold it: lm-eval would end
    in the middle of the samples.
    """
    for instance in instances:
        instance.resps = [_writable(response) for response in instance.resps]


def _writable(response: object) -> object:
    if not isinstance(response, str):
        return response
    try:
        response.encode()
    except UnicodeEncodeError:
        return response.encode("utf-8", "backslashreplace").decode()
    return response
