"""What lm_eval prints: the headline first, few rows; nothing is lost where nothing is kept."""

from typing import Any

import pytest
from lm_eval import utils

from lm_eval_ext.results.printed import shorter
from lm_eval_ext.results.show import MOST_ROWS

SHARES = {"direct/mean,none": 0.0, "direct/mean_stderr,none": 0.0, "undefined,none": 0.0}
PARTS = {
    "direct/mean:know_doubt,none": 0.25,
    "direct/mean:know_doubt_stderr,none": 0.1,
    "direct/mean:managed_failed,none": 0.75,
}
PERCENT = {"populated/relative_performance,query": 80.5, "no_query,query": 0.5}
NOTED = {"direct/mean,none": {"documents": 48, "clusters": 16, "low": 0.0, "high": 0.074}}


def results(**tasks: dict[str, Any]) -> dict[str, Any]:
    configs = {name: {"metadata": {"intervals": NOTED}} for name in tasks}
    if "magnifico_mini" in tasks:
        percent = {"metric": "populated/relative_performance", "range": [0.0, 100.0]}
        configs["magnifico_mini"]["metric_list"] = [percent]  # type: ignore[assignment]
    return {
        "results": {name: {"alias": name, **scores} for name, scores in tasks.items()},
        "configs": configs,
        "versions": {},
        "higher_is_better": {name: {"direct/mean": True} for name in tasks},
        "n-samples": {name: {"original": 48, "effective": 48} for name in tasks},
    }


def rows(table: str) -> list[str]:
    """The lines of lm_eval's table below its head, without spaces beside the bars."""
    found = [
        "|".join(cell.strip() for cell in line.split("|"))
        for line in table.splitlines()
        if line.startswith("|") and "---" not in line
    ]
    return [line for line in found if "Version" not in line]


def test_the_headline_stands_first_with_its_interval() -> None:
    both = results(lieder_base={"direct/existence,none": 0.9, **SHARES, **PARTS})
    with shorter("some/folder"):
        table = utils.make_table(both)
    first, *others = rows(table)
    assert "|* direct/mean|↑|0.000 [0.000, 0.074]||" in first
    assert ["direct/existence" in row for row in others] == [True]
    assert "3 more metrics: lm-eval-ext show --all some/folder" in table
    assert both["results"]["lieder_base"].keys() == {
        "alias", "direct/existence,none", *SHARES, *PARTS
    }, "only what is printed"  # fmt: skip


def test_percentages_and_shares_are_never_in_one_table() -> None:
    with shorter("some/folder"):
        table = utils.make_table(
            results(lieder_base=SHARES, magnifico_mini=PERCENT, arc={"acc,none": 1.0})
        )
    first, percent, shares = table.split("Version")
    assert first.startswith("In percent:")
    assert "80.5" in percent and "no_query" not in percent and "direct/mean" not in percent
    assert "80.5" not in shares
    for metric in ("no_query", "direct/mean", "acc"):
        assert metric in shares, "a task that is not ours keeps its row"


def test_at_most_so_many_rows() -> None:
    many = {
        f"{view}/{score},none": 0.5
        for view in ("gain", "random", "concept", "error_change", "same_labels", "more", "x")
        for score in ("rouge_l", "accuracy", "rouge_l_100x200")
    }
    with shorter("some/folder"):
        assert len(rows(utils.make_table(results(conceptual_glue=many)))) == MOST_ROWS


@pytest.mark.parametrize("output_path", [None, ""])
def test_without_a_results_file_the_whole_table_comes_first(output_path: str | None) -> None:
    plain = results(lieder_base={**SHARES, **PARTS})
    whole = utils.make_table(plain)
    with shorter(output_path):
        table = utils.make_table(plain)
    assert table.startswith(whole)
    assert "|* direct/mean|" in rows(table.removeprefix(whole))[0]
    assert "above" in table.splitlines()[-1]


def test_other_tables_are_lm_evals(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = results(arc=PERCENT) | {"groups": {"lieder": {"alias": "lieder"}}}
    for column in ("results", "groups"):
        before = utils.make_table(plain, column)
        with shorter("some/folder"):
            assert utils.make_table(plain, column) == before
    monkeypatch.setattr(utils, "make_table", lambda results, column="results": f"of {results}")
    with shorter("some/folder"):
        assert utils.make_table(["other"]) == "of ['other']", "results of another form"


def test_lm_eval_gets_its_function_back() -> None:
    before = utils.make_table
    with pytest.raises(KeyError), shorter("some/folder"):
        raise KeyError
    assert utils.make_table is before
