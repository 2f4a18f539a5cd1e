"""Which constructions an example shows."""

import pytest

from lm_eval_ext.benchmarks.cogs.in_context import constructions


@pytest.mark.parametrize(
    ("sentence", "form", "shown"),
    [
        ("The owl slept .", "* owl ( x _ 1 ) ; sleep . agent ( x _ 2 , x _ 1 )",
         {"agent", "subject the"}),
        ("Ada fell .", "fall . theme ( x _ 1 , Ada )", {"theme", "subject name"}),
        ("A cup was lent to Ada .",
         "cup ( x _ 1 ) AND lend . theme ( x _ 3 , x _ 1 ) AND lend . recipient ( x _ 3 , Ada )",
         {"was theme recipient", "subject a", "recipient name"}),
        ("Ada lent Bo a cup .",
         "lend . agent ( x _ 1 , Ada ) AND lend . recipient ( x _ 1 , Bo ) "
         "AND lend . theme ( x _ 1 , x _ 4 ) AND cup ( x _ 4 )",
         {"agent recipient theme", "subject name", "recipient name", "theme a"}),
        ("Ada said that Bo saw a cup in a box on the mat .",
         "* mat ( x _ 11 ) ; say . agent ( x _ 1 , Ada ) AND say . ccomp ( x _ 1 , x _ 4 ) "
         "AND see . agent ( x _ 4 , Bo ) AND see . theme ( x _ 4 , x _ 6 ) AND cup ( x _ 6 ) "
         "AND cup . nmod . in ( x _ 6 , x _ 9 ) AND box ( x _ 9 ) "
         "AND box . nmod . on ( x _ 9 , x _ 11 )",
         {"agent ccomp", "agent theme", "subject name", "theme a", "theme modified", "nmod in",
          "nmod on", "nmod 1", "nmod 2", "ccomp 1"}),
        ("A cup on the mat fell .",
         "* mat ( x _ 4 ) ; cup ( x _ 1 ) AND cup . nmod . on ( x _ 1 , x _ 4 ) "
         "AND fall . theme ( x _ 5 , x _ 1 )",
         {"theme", "subject a", "subject modified", "nmod on", "nmod 1"}),
        ("Ada wished to sleep .",
         "wish . agent ( x _ 1 , Ada ) AND wish . xcomp ( x _ 1 , x _ 3 ) "
         "AND sleep . agent ( x _ 3 , Ada )",
         {"agent xcomp", "agent", "subject name"}),
        ("owl", "LAMBDA a . owl ( a )", set()),
        ("Ada", "Ada", set()),
    ],
)  # fmt: skip
def test_constructions_are_read_from_the_form(sentence: str, form: str, shown: set[str]) -> None:
    assert constructions(sentence, form) == shown
