"""COGS's examples as typed records, and their types.

A *type* is what an example tests, such as an object that was only seen as a subject. It is also
the cluster for standard errors: examples of one type share the construction and, if the type is
lexical, the key word.
"""

from typing import Literal, NamedTuple, TypeAlias, get_args

Corpus: TypeAlias = Literal["cogs", "mini"]
"""COGS, or our own small grammar (:mod:`~lm_eval_ext.benchmarks.cogs.mini`)."""

Split: TypeAlias = Literal["id", "testlex", "gen", "gen_small"]
"""The paper's Test-ID, Test-Lex and Gen (section 2.1), and a part of Gen."""

SPLITS: tuple[Split, ...] = get_args(Split)

LEXICAL, STRUCTURAL = "lexical", "structural"
STRUCTURAL_TYPES = frozenset({"cp_recursion", "pp_recursion", "obj_pp_to_subj_pp"})
"""Types of Gen with known words in a new structure. In the others, the lexical ones, the key
word is in a position where training did not have it (paper, section 2)."""


class Example(NamedTuple):
    """One example, with the corpus's own words.

    Attributes:
        id: Split and line, such as ``gen/17``; the same under every lexicon.
        sentence: Tokens separated by single spaces.
        form: The logical form, as tokens separated by single spaces.
        type: The type in the file.
    """

    id: str
    sentence: str
    form: str
    type: str


def kind_of(type_: str) -> str:
    """Return whether a type of Gen is lexical or structural."""
    return STRUCTURAL if type_ in STRUCTURAL_TYPES else LEXICAL
