"""Reading GLUE, HotpotQA and mini: published counts, formats, options."""

import json
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.conceptual import load, mini
from lm_eval_ext.benchmarks.conceptual.records import Sample, main_concepts
from lm_eval_ext.errors import OptionError

GLUE = "conceptual/glue_diagnostics/diagnostic-full.tsv"


def test_glue_has_the_published_counts(shared_data: Path) -> None:
    """310 samples have 29 concepts."""
    samples = load.glue(shared_data / GLUE)
    assert len(samples) == 310
    concepts: set[str] = set()
    for sample in samples:
        concepts |= sample.concepts
    assert len(concepts) == 29


@pytest.mark.parametrize("end", ["\r\n", "\n"], ids=["CRLF", "LF"])
def test_glue_drops_repeats_and_rows_without_logic(tmp_path: Path, end: str) -> None:
    """Four of six rows stay, under any line ends; quotes and separators are characters."""
    lines = (
        "Logic\tPremise\tHypothesis\tLabel",
        "Negation\tIt snows a lot.\tIt does not snow a lot.\tcontradiction",
        "Negation\ta lot. It snows\tIt rains.\tneutral",
        "\tIt hails.\tIt does not hail.\tcontradiction",
        "Negation;Universal\tIt snows a lot.\tAll of it snows.\tneutral",
        'Negation\tHe said "yes.\tHe said\u2028no.\tneutral',
        "Negation\tHe said no.\tHe said\u2028no.\tneutral",
    )
    path = tmp_path / "diagnostic-full.tsv"
    path.write_bytes((end.join(lines) + end).encode())
    samples = load.glue(path)
    ids = [sample.id for sample in samples]
    assert ids == ["glue-0002", "glue-0005", "glue-0006", "glue-0007"]
    _, joint, quoted, unquoted = samples
    assert joint.concepts == {"Negation;Universal"}, "a joint value is one concept"
    assert quoted.context == 'He said "yes.'
    assert quoted.question == "He said\u2028no."
    assert quoted.copy_key != unquoted.copy_key, "a premise is part of the question"


def test_hotpotqa_is_joined_by_id(tmp_path: Path) -> None:
    """The authors' code joins by position. A copy of a question may come with other paragraphs."""
    contexts: dict[str, list[tuple[str, list[str]]]] = {
        "a": [],
        "b": [("T", ["One.", " Two."])],
        "c": [("T", ["Long. " * 400])],
        "d": [],
    }
    rows = []
    for name, context in contexts.items():
        rows.append({"_id": name, "context": context, "question": "Who?", "answer": "She"})
    questions = tmp_path / "q.json"
    questions.write_text(json.dumps(rows))
    triples = {}
    for name in ("x", "c", "b", "a"):
        triples[name] = [[["T", 0, ["She", "is", name]]]]
    annotations = tmp_path / "r.json"
    annotations.write_text(json.dumps(triples))
    samples = load.hotpotqa(questions, annotations)
    concepts = {sample.id: sample.concepts for sample in samples}
    assert list(concepts) == ["a", "b", "c"]
    assert concepts == {"a": {"is a"}, "b": {"is b"}, "c": {"is c"}}
    without_text, short_text, long_text = samples
    assert without_text.context == ""
    assert short_text.context == "T: One. Two."
    assert without_text.copy_key == short_text.copy_key == long_text.copy_key


def test_the_loader_reads_available_data(real_data: Path) -> None:
    """The provenance says that only a part of the dataset is there."""
    task = load.dataset.load({"conceptual_dataset": "hotpotqa"})
    assert len(task.dataset["test"]) == 175
    assert task.provenance.source == "hotpotqa_part+r4c"


def test_the_main_concept_is_the_commonest() -> None:
    """The first in the alphabet of equally common concepts; none where there is none."""
    samples = []
    for name, letters in {"a": "xy", "b": "yz", "c": "xy", "d": "qp", "e": ""}.items():
        samples.append(Sample(name, "?", "!", frozenset(letters)))
    assert main_concepts(samples) == {"a": "y", "b": "y", "c": "y", "d": "p", "e": ""}


def test_mini_has_six_concepts_with_enough_and_one_without() -> None:
    """The seventh concept has too few samples; right answers have all labels."""
    samples = mini.samples()
    assert sorted(map(len, mini.concepts().values())) == [2, 6, 6, 6, 6, 6, 6]
    assert len(samples) == 38
    assert len({sample.copy_key for sample in samples}) == 38
    assert {sample.answer_label for sample in samples} == {"A", "B", "C", "D"}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("conceptual_dataset", "squad", "Input should be 'glue', .* got 'squad'"),
        ("conceptual_dataset", "openbookqa", r"needs spacy: .*\.\[concepts\]"),
        ("conceptual_template", "nicest", "use options, choose, letter or all"),
        ("conceptual_max_words", -1, "should be greater than or equal to 0, got -1"),
        ("conceptual_max_word", 3, "unknown metadata key"),
        ("conceptual_control", "label", "Input should be 'none' or 'labels', got 'label'"),
        ("conceptual_control", "labels", "answers of mini under the template options are free"),
    ],
)
def test_illegal_options_are_refused_in_one_line(
    option: str, value: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the value and the legal ones, or the library that is missing."""

    def find_nothing(name: str) -> None:
        """Say that no library is installed."""

    monkeypatch.setattr("lm_eval_ext.errors.find_spec", find_nothing)
    with pytest.raises(OptionError, match=message) as raised:
        load.dataset(**{"conceptual_dataset": "mini", option: value})
    assert "\n" not in str(raised.value)
