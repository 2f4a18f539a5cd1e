"""Facts that a model's file may state: what is legal, and what is read of them."""

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from support.results_files import answered_rows, write_run

from lm_eval_ext.errors import OptionError
from lm_eval_ext.results.files import read_results
from lm_eval_ext.results.model_facts import ModelFacts, is_legal, model_facts
from lm_eval_ext.runs.model_files import read_model_files

LEGAL = [
    ("size", "7B"), ("size", "1.2 t"), ("family", "Llama 3"),
    ("weights", "closed"), ("date", "2024-07"), ("date", datetime.date(2024, 7, 23)),
    ("price", [0, 1]),
]  # fmt: skip
ILLEGAL = [
    ("size", 7), ("size", "big"), ("size", True), ("size", -7e9),
    ("family", 3), ("weights", "Open"), ("licence", ["MIT"]), ("price", 0.15),
    ("price", [0.15]), ("price", [-1, 1]), ("price", [1, "x"]),
    ("date", "2024-13"), ("date", "20240723"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), LEGAL + ILLEGAL)
def test_exactly_the_listed_facts_are_legal(key: str, value: Any) -> None:
    assert is_legal(key, value) is ((key, value) in LEGAL)


def test_a_wrong_fact_is_refused_before_a_run(tmp_path: Path) -> None:
    file = tmp_path / "one.yaml"
    file.write_text("model: dummy\nsize: 7\n")
    with pytest.raises(OptionError, match=r"one.yaml: size: it must be the number of parameters"):
        read_model_files([file])
    file.write_text("model: dummy\nsize: 7B\nfamily: x\nweights: open\ndate: 2024-07-23\n")
    (model,) = read_model_files([file])
    assert model.settings == {"model": "dummy"}


def test_facts_are_those_of_the_models_file_or_lm_evals_count(tmp_path: Path) -> None:
    """From the file; a wrong one counts as none; lm-eval's own count where no size is stated."""
    file = write_run(tmp_path / "one", "one", "some_task", answered_rows(8, 4))
    (results,) = read_results(tmp_path)
    assert model_facts(results) == ModelFacts()
    model = tmp_path / "model.yaml"
    model.write_text("size: 1.5B\nfamily: 7\nweights: open\ndate: 2024-07-23\nlicence: 'a\\tb'\n")
    expected = ModelFacts(size=1.5e9, weights="open", date="2024-07-23", licence=r"a\tb")
    assert model_facts(results) == expected
    model.unlink()
    content = json.loads(file.read_text())
    for count, size in ((124439808, 124439808.0), (-1, None)):
        content["config"]["model_num_parameters"] = count
        file.write_text(json.dumps(content))
        assert model_facts(read_results(tmp_path)[0]) == ModelFacts(size=size)
