"""The hub's copies of the datasets, from local folders in the hub's layout."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_ext.benchmarks.conceptual import hotpotqa, hub, load, openbookqa
from lm_eval_ext.errors import DataError, OptionError

ROW = {
    "id": "7-1",
    "question_stem": "Which of these melts?",
    "choices": {"label": ["A", "B"], "text": ["ice", "air"]},
    "fact1": "Melts ice does",
    "answerKey": "A",
}


def hub_copy(folder: Path, config: str, **splits: list[dict[str, Any]]) -> str:
    """A dataset in the hub's layout, on this machine."""
    from datasets import Dataset

    files = []
    for split, rows in splits.items():
        Dataset.from_list(rows).to_parquet(folder / config / f"{split}.parquet")
        files.append(f"  - split: {split}\n    path: {config}/{split}.parquet\n")
    head = f"---\nconfigs:\n- config_name: {config}\n  data_files:\n{''.join(files)}---\n"
    (folder / "README.md").write_text(head)
    return str(folder)


def test_openbookqas_rows_come_from_the_hub_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**ROW, "id": name} for name in ("7-1", "7-2")]
    path = hub_copy(tmp_path, "additional", validation=rows[:1], test=rows[1:])
    there = dataclasses.replace(hub.OPENBOOKQA, path=path)
    found = hub.rows(there)
    assert [
        s.id for s in openbookqa.samples(found, lambda facts: dict.fromkeys(facts, "melts"))
    ] == ["7-1", "7-2"]
    described = hub.describe(there, found)
    assert described.config_name == hub.OPENBOOKQA.revision
    assert hub.describe(there, found[:1]).download_checksums != described.download_checksums
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))
    with pytest.raises(OptionError, match="only local files are"):
        hub.rows(there)


def test_hotpotqas_rows_from_the_hub_make_the_same_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"question": "Who?", "answer": "She"}
    in_file = [{"_id": "b", **question, "context": [["T", ["One.", " Two."]], ["U", []]]}]
    at_hub = {
        "id": "b",
        **question,
        "context": {"title": ["T", "U"], "sentences": [["One.", " Two."], []]},
    }
    (tmp_path / "q.json").write_text(json.dumps(in_file))
    (tmp_path / "r.json").write_text(json.dumps({"b": [[["T", 0, ["She", "is", "x"]]]]}))
    path = hub_copy(tmp_path / "hub", "fullwiki", validation=[at_hub])
    rows = hub.rows(dataclasses.replace(hub.HOTPOTQA, path=path))
    joined = hotpotqa.join(
        ((place, hub.as_in_files(place, row)) for place, row in rows), tmp_path / "r.json"
    )
    assert joined == hotpotqa.read(tmp_path / "q.json", tmp_path / "r.json")
    with pytest.raises(DataError, match="here: not a question"):
        hub.as_in_files("here", {"id": "b"})


def test_a_hub_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be loaded from the hub") as raised:
        hub.rows(dataclasses.replace(hub.HOTPOTQA, path=str(tmp_path / "nothing")))
    assert "\n" not in str(raised.value)


def test_the_loader_takes_both_datasets_from_the_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hub_copy(tmp_path / "obqa", "additional", validation=[ROW], test=[{**ROW, "id": "7-2"}])
    monkeypatch.setattr(hub, "OPENBOOKQA", dataclasses.replace(hub.OPENBOOKQA, path=path))
    monkeypatch.setattr(openbookqa, "find", lambda named: named)
    monkeypatch.setattr(openbookqa, "roots", dict.fromkeys)
    rows = load.dataset(
        conceptual_dataset="openbookqa", conceptual_from="hub", conceptual_pipeline="melts"
    )["test"]
    assert {(row["id"], row["answer"], row["concept"]) for row in rows} == {
        ("7-1", "ice", "melts"),
        ("7-2", "ice", "melts"),
    }
    question = {"id": "b", "question": "Who?", "answer": "She"}
    other = {**question, "id": "not annotated"}
    context = {"title": ["T"], "sentences": [["One."]]}
    path = hub_copy(
        tmp_path / "hotpot", "fullwiki",
        validation=[{**row, "context": context} for row in (question, other)],
    )  # fmt: skip
    monkeypatch.setattr(hub, "HOTPOTQA", dataclasses.replace(hub.HOTPOTQA, path=path))
    annotations = tmp_path / "r.json"
    annotations.write_text(json.dumps({"b": [[["T", 0, ["She", "is", "x"]]]]}))
    monkeypatch.setattr(load, "require", lambda *_: SimpleNamespace(path=annotations))
    (row,) = load.dataset(conceptual_dataset="hotpotqa", conceptual_from="hub")["test"]
    assert (row["id"], row["concepts"], row["answer"]) == ("b", ["is x"], "She")
