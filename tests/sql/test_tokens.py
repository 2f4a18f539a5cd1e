"""Tokenizing SQL: strings, comments and quotes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.sql.ordering import order_of, tokens


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        (
            "select 'it''s', \"a\"\"b\", [c d], `e``f`",
            "select|'it''s'|,|\"a\"\"b\"|,|[c d]|,|`e``f`",
        ),
        ("a--b\nc/* d\n*/e/*f", "a|c|e"),
        ("x'ff' 0x1F 1.5e-3 .5 1.", "x'ff'|0x1F|1.5e-3|.5|1."),
        ("t1.a_b$ >= ää", "t1|.|a_b$|>|=|ää"),
        ("'open", "'|open"),
        ("", ""),
    ],
)
def test_a_query_is_divided_into_tokens(sql: str, texts: str) -> None:
    assert "|".join(token.text for token in tokens(sql)) == texts


WORDS = "select a b from order by limit 1 2 , ( ) desc distinct ; union"


@given(
    st.text(alphabet="ab1 '\"`[]()-/*\n,;.\ud800\0", max_size=40)
    | st.lists(st.sampled_from(WORDS.split())).map(" ".join)
)
def test_any_text_can_be_cut_and_nothing_is_invented(text: str) -> None:
    end = 0
    for token in tokens(text):
        assert token.start >= end
        assert text[token.start : token.end] == token.text
        end = token.end
    order = order_of(text, ("a", "b"))
    if order is not None and order.helper is not None:
        assert all(0 <= key < 2 + order.added for key in order.key_columns)
