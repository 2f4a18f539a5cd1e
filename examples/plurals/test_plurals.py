"""Plurals: the documents and the scores."""

import pytest
from plurals import documents, score

from lm_eval_ext.errors import OptionError

RESPONSES = [
    (" mirps", 1, 0),
    ("Mirps, say", 1, 0),
    ("mirp", 0, 0),
    ("two mirps", 0, 0),
    ("", 0, 1),
]


def test_every_noun_is_a_document() -> None:
    found = documents()["test"]
    assert len(set(found["id"])) == len(found) == 20
    assert found[0]["prompt"].endswith("There are two")
    assert documents(plurals_number="three")["test"][0]["prompt"].endswith("three")
    with pytest.raises(OptionError, match="plurals_number"):
        documents(plurals_number="four")


@pytest.mark.parametrize(("response", "correct", "empty"), RESPONSES)
def test_the_first_word_counts(response: str, correct: float, empty: float) -> None:
    mirp = documents()["test"][0]
    assert score(mirp, [response]) == [{"ending": "s", "correct": correct, "empty": empty}]
