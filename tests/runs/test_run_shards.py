"""Which documents a shard has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs.shards import Shard


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 200), max_size=4), st.integers(1, 30))
def test_every_document_is_in_one_shard_and_shards_are_even(sizes: dict[str, int], of: int) -> None:
    parts = [Shard(number, of).documents(sizes) for number in range(1, of + 1)]
    for task, size in sizes.items():
        lengths = [len(part.get(task, [])) for part in parts]
        assert [one for part in parts for one in part.get(task, [])] == list(range(size))
        assert max(lengths) - min(lengths) <= 1
    # lm-eval takes an empty list for all documents.
    assert all(one for part in parts for one in part.values())


def test_a_shard_is_read_and_shown() -> None:
    assert str(Shard.read("2/4")) == "2/4"
    for text in ("0/4", "5/4", "2", "2/", "/4", "a/b", "-1/4", "1/0", "1/4/2"):
        with pytest.raises(OptionError, match="must be K/N with K from 1 to N"):
            Shard.read(text)
