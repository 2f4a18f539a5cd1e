"""COGS's examples as typed records, and their types.

A *type* is what an example tests, such as an object that was only seen as a subject. It is also
the cluster for standard errors: examples of one type share the construction and, if the type is
lexical, the key word.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from lm_eval_ext.errors import OptionError

Corpus: TypeAlias = Literal["cogs", "mini"]
"""COGS, or our own small grammar (:mod:`~lm_eval_ext.benchmarks.cogs.mini`)."""

Split: TypeAlias = Literal["id", "testlex", "gen", "gen_small"]
"""The paper's Test-ID, Test-Lex and Gen (section 2.1), and a part of Gen."""

CORPORA: tuple[Corpus, ...] = get_args(Corpus)
SPLITS: tuple[Split, ...] = get_args(Split)

LEXICAL, STRUCTURAL = "lexical", "structural"
STRUCTURAL_TYPES = frozenset({"cp_recursion", "pp_recursion", "obj_pp_to_subj_pp"})
"""Types of Gen with known words in a new structure. In the others, the lexical ones, the key
word is in a position where training did not have it (paper, section 2)."""

IN_DISTRIBUTION = "in_distribution"
TEST_LEX_SUFFIX = "_1100_delimited"
"""Ending of every type in the authors' Test-Lex; our names leave it out."""

COLUMNS = 3
"""Of a COGS file: sentence, logical form, type; tab-separated, no header, no quoting."""

_GEN = (
    "subj_to_obj_common", "subj_to_obj_proper", "obj_to_subj_common", "obj_to_subj_proper",
    "prim_to_subj_common", "prim_to_subj_proper", "prim_to_obj_common", "prim_to_obj_proper",
    "prim_to_inf_arg", "active_to_passive", "passive_to_active",
    "obj_omitted_transitive_to_transitive", "unacc_to_transitive", "do_dative_to_pp_dative",
    "pp_dative_to_do_dative", "only_seen_as_transitive_subj_as_unacc_subj",
    "only_seen_as_unacc_subj_as_obj_omitted_transitive_subj",
    "only_seen_as_unacc_subj_as_unerg_subj", "cp_recursion", "pp_recursion", "obj_pp_to_subj_pp",
)  # fmt: skip

_TEST_LEX = (
    "hedgehog_subj", "cockroach_obj", "Lina_subj", "Charlie_obj", "bake_omitted_transitive",
    "shatter_unaccusative", "cobra_transitive_animate_subject",
    "hippo_unaccusative_animate_subject", "bless_active", "squeeze_passive",
    "teleport_double_object_dative", "ship_PP_dative",
)  # fmt: skip

_MINI_GEN = (
    "subj_to_obj_common", "subj_to_obj_proper", "obj_to_subj_common", "obj_to_subj_proper",
    "prim_to_subj_common", "active_to_passive", "passive_to_active",
    "cp_recursion", "pp_recursion", "obj_pp_to_subj_pp",
)  # fmt: skip

_MINI_TEST_LEX = ("subj_common", "subj_proper", "obj_common", "obj_proper", "active", "passive")

_TYPES: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("cogs", "id"): (IN_DISTRIBUTION,),
        ("cogs", "testlex"): _TEST_LEX,
        ("cogs", "gen"): _GEN,
        ("cogs", "gen_small"): _GEN,
        ("mini", "id"): (IN_DISTRIBUTION,),
        ("mini", "testlex"): _MINI_TEST_LEX,
        ("mini", "gen"): _MINI_GEN,
        ("mini", "gen_small"): _MINI_GEN,
    }
)
"""By corpus and split, in the order of reports."""


@dataclass(frozen=True)
class Example:
    """One example, with the corpus's own words.

    Attributes:
        id: Split and line, such as ``gen/17``; the same under every lexicon.
        sentence: Tokens separated by single spaces.
        form: The logical form, as tokens separated by single spaces.
        type: One of :func:`types_of`, or the training set's name for it.
    """

    id: str
    sentence: str
    form: str
    type: str


def types_of(corpus: str, split: str) -> tuple[str, ...]:
    """The types of a corpus's split.

    Raises:
        OptionError: The corpus or the split does not exist.
    """
    for key, value, legal in (("corpus", corpus, CORPORA), ("split", split, SPLITS)):
        if value not in legal:
            raise OptionError(f"cogs_{key}: no {value!r}; use {', '.join(legal)}")
    return _TYPES[corpus, split]


def kind_of(type_: str) -> str:
    """Whether a type of Gen is lexical or structural."""
    return STRUCTURAL if type_ in STRUCTURAL_TYPES else LEXICAL
