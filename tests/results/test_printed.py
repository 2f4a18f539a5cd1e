"""What lm_eval prints: metrics over all documents; nothing is lost where nothing is kept."""

from typing import Any

import pytest
from lm_eval import utils

from lm_eval_ext.harness.printed import without_parts

WHOLE = {"direct/mean,none": 0.5, "direct/mean_stderr,none": 0.1, "undefined,none": 0.0}
PARTS = {
    "direct/mean:know_doubt,none": 0.25,
    "direct/mean:know_doubt_stderr,none": 0.1,
    "direct/mean:managed_failed,none": 0.75,
}
OTHERS = {"populated/relative_performance:plausible,none": 80.0}


def results(**tasks: dict[str, Any]) -> dict[str, Any]:
    return {"results": {name: {"alias": name, **scores} for name, scores in tasks.items()},
            "versions": {}}  # fmt: skip


def test_parts_are_counted_and_left_out() -> None:
    both = results(
        lieder_base={**WHOLE, **PARTS}, magnifico_mini=OTHERS, arc={"acc:know_doubt,none": 1.0}
    )
    with without_parts("some/folder"):
        table = utils.make_table(both)
    assert "know_doubt" not in table.replace("acc:know_doubt", "")
    assert "direct/mean" in table and "relative_performance:plausible" in table
    assert "acc:know_doubt" in table, "a task that is not ours"
    assert table.splitlines()[-1].startswith("2 more, over a part of the documents")
    assert table.splitlines()[-1].endswith("show --all some/folder")
    assert both["results"]["lieder_base"].keys() == {"alias", *WHOLE, *PARTS}, (
        "only what is printed"
    )


@pytest.mark.parametrize("output_path", [None, ""])
def test_without_a_results_file_the_table_is_whole(output_path: str | None) -> None:
    with without_parts(output_path):
        assert "direct/mean:know_doubt" in utils.make_table(results(lieder_base=PARTS))


def test_a_table_without_parts_is_lm_evals() -> None:
    plain = results(lieder_base=WHOLE, arc=OTHERS)
    before = utils.make_table(plain)
    with without_parts("some/folder"):
        assert utils.make_table(plain) == before


def test_results_of_another_form_go_to_lm_eval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "make_table", lambda results, column="results": f"of {results}")
    with without_parts("some/folder"):
        assert utils.make_table(["other"]) == "of ['other']"


def test_lm_eval_gets_its_function_back() -> None:
    before = utils.make_table
    with pytest.raises(KeyError), without_parts("some/folder"):
        raise KeyError
    assert utils.make_table is before
