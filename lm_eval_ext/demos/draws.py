"""Drawing, the same on every machine.

Python's own generator promises the same floats for a seed, not the same samples, and its
``hash`` differs between processes; so draws come from BLAKE2 of what they depend on.
"""

import hashlib
from collections.abc import Iterator

_BYTES = 8


def shuffled(count: int, *key: object) -> Iterator[int]:
    """Yields the numbers below ``count`` in an order drawn from the key.

    Lazily, by swaps as in Fisher and Yates' shuffle: the first few of a million cost a few
    steps. Every order is equally likely up to 2**-64 times ``count``.

    Args:
        count: How many numbers.
        key: What the order depends on, such as seed, name of the selection and sample id.
    """
    start = hashlib.blake2b("\x1f".join(map(str, key)).encode("utf-8", "surrogatepass")).digest()
    moved: dict[int, int] = {}
    for place in range(count):
        drawn = hashlib.blake2b(place.to_bytes(_BYTES, "big"), key=start, digest_size=_BYTES)
        other = place + int.from_bytes(drawn.digest(), "big") % (count - place)
        yield moved.get(other, other)
        moved[other] = moved.pop(place, place)
