"""The benchmark's page lists the columns and sizes that the code has."""

from pathlib import Path

from lm_eval_ext.benchmarks.magnifico import own
from lm_eval_ext.cards import cards

PAGE = Path(__file__).parents[3] / "docs" / "benchmarks" / "magnifico.md"


def test_every_column_of_a_users_file_is_documented() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for column in own.REQUIRED + own.OPTIONAL:
        assert f"`{column}`" in text, column


def test_the_sizes_are_those_of_the_card() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for task, facts in cards()["magnifico"].tasks.items():
        if not facts.is_user_data:
            assert f"{facts.documents:,}" in text, task
