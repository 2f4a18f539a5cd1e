"""OpenBookQA: its questions, and the roots that a spaCy pipeline finds in its facts."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from lm_eval_ext.benchmarks.conceptual import load, openbookqa
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.errors import OptionError


def first_words(facts: Iterable[str]) -> dict[str, str]:
    """Take the first word of a fact for its root."""
    return {fact: fact.split(maxsplit=1)[0] for fact in facts}


def test_openbookqa_has_1000_questions(shared_data: Path) -> None:
    """Each has four options, of which the answer is one."""
    files = sorted((shared_data / "conceptual/openbookqa").glob("*.recon.jsonl"))
    samples = openbookqa.read(files, first_words)
    assert len({sample.id for sample in samples}) == 1000
    for sample in samples:
        assert len(sample.options) == 4
        assert Option(sample.answer_label, sample.answer) in sample.options


@pytest.fixture
def spacy_folder() -> Path:
    """Return a tiny pipeline, trained on sentences of our own."""
    pytest.importorskip("spacy")
    from support import spacy_pipeline

    folder: Path = spacy_pipeline.trained()
    return folder


@pytest.mark.slow
def test_roots_are_what_the_parse_marks_in_lower_case(spacy_folder: Path) -> None:
    """The pipeline finds the verbs of the sentences that it has learnt."""
    from support import spacy_pipeline

    nlp = openbookqa.pipeline(str(spacy_folder))
    verbs = spacy_pipeline.FACTS
    roots = openbookqa.roots(verbs, nlp)
    assert len(roots.items() & verbs.items()) > 0.9 * len(verbs)
    assert openbookqa.roots(["ICE"], nlp) == {"ICE": "ice"}


@pytest.mark.slow
def test_another_version_of_a_pipeline_has_another_label(
    spacy_folder: Path, tmp_path: Path
) -> None:
    """The label has name, version and digest, wherever the pipeline lies."""
    from support import spacy_pipeline

    nlp = openbookqa.pipeline(str(spacy_folder))
    spacy_pipeline.copy(spacy_folder, tmp_path / "new", version="1.2.4")
    label = openbookqa.label(openbookqa.pipeline(str(tmp_path / "new")))
    assert re.fullmatch(r"en_tiny-1\.2\.4-[0-9a-f]{8}", label)
    assert label[-8:] != openbookqa.label(nlp)[-8:]


@pytest.mark.slow
def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    """The error says that it finds no root."""
    spacy = pytest.importorskip("spacy")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(OptionError, match="finds no root"):
        openbookqa.roots(["ice melts"], openbookqa.pipeline(str(tmp_path / "blank")))


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["en_no_such_pipeline", "no/such/folder", "broken"])
def test_a_pipeline_that_cannot_be_loaded_is_one_line(
    tmp_path: Path, spacy_folder: Path, monkeypatch: pytest.MonkeyPatch, pipeline: str
) -> None:
    """The error says how to download one, for a name, a folder and a broken pipeline."""
    from support import spacy_pipeline

    spacy_pipeline.copy(spacy_folder, tmp_path / "broken", version="1.2.4")
    (tmp_path / "broken/config.cfg").write_text("[nlp]\n")
    monkeypatch.chdir(tmp_path)
    openbookqa.pipeline.cache_clear()
    with pytest.raises(OptionError, match="python -m spacy download") as raised:
        load.dataset(conceptual_dataset="openbookqa", conceptual_pipeline=pipeline)
    assert "\n" not in str(raised.value)
