"""Reading the datasets: published counts, and errors for invalid files."""

import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.conceptual import fewshot, glue, hotpotqa, load, mini, openbookqa
from lm_eval_ext.benchmarks.conceptual.fewshot import SELECTIONS, TOO_FEW, Rules
from lm_eval_ext.benchmarks.conceptual.records import Sample, main_concepts, plain
from lm_eval_ext.errors import DataError, OptionError

HEADER = "\t".join(glue.COLUMNS)


def rows_of(samples: list[Sample]) -> list[dict[str, Any]]:
    return [{"id": s.id, "copy_key": s.copy_key, "concepts": sorted(s.concepts)} for s in samples]


def test_glue_has_the_published_counts(shared_data: Path) -> None:
    samples = glue.read(shared_data / "conceptual/glue_diagnostics/diagnostic-full.tsv")
    assert len(samples) == 310
    assert len(Counter(concept for s in samples for concept in s.concepts)) == 29
    chosen, left_out = fewshot.choose(rows_of(samples), Rules(False, 0), 3, 1234)
    assert len(chosen) == 282, "the paper's number"
    assert len(left_out[TOO_FEW]) == 28


def test_how_often_glue_shows_a_mirror_image(shared_data: Path) -> None:
    """The documentation's figures: a pair with premise and hypothesis swapped is no copy."""
    samples = glue.read(shared_data / "conceptual/glue_diagnostics/diagnostic-full.tsv")
    pairs = {s.id: (plain(s.context), plain(s.question)) for s in samples}
    mirrored = {(there, here) for here, there in pairs.values()}
    assert sum(pair in mirrored for pair in pairs.values()) == 257
    chosen, _ = fewshot.choose(rows_of(samples), Rules(False, 0), 3, 1234)
    met = {
        selection: sum(
            any(pairs[other] == pairs[name][::-1] for other in choices[selection].ids)
            for name, choices in chosen.items()
        )
        for selection in SELECTIONS
    }
    assert met == {"random": 5, "concept": 32}
    unordered = [
        {**row, "copy_key": " | ".join(sorted(pairs[row["id"]]))} for row in rows_of(samples)
    ]
    assert len(fewshot.choose(unordered, Rules(False, 0), 3, 1234)[0]) == 265


def diagnostics(folder: Path, *rows: tuple[str, str, str, str], end: str = "\r\n") -> Path:
    lines = [HEADER, *("\t\t".join(["", logic]) + "\t\t\t" + "\t".join(r) for logic, *r in rows)]
    path = folder / "diagnostic-full.tsv"
    path.write_bytes((end.join(lines) + end).encode())
    return path


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_glue_drops_repeats_and_rows_without_logic(tmp_path: Path, end: str) -> None:
    path = diagnostics(
        tmp_path,
        ("Negation", "It snows a lot.", "It does not snow a lot.", "contradiction"),
        ("Negation", "a lot. It snows", "It rains.", "neutral"),
        ("", "It hails.", "It does not hail.", "contradiction"),
        ("Negation;Universal", "It snows a lot.", "All of it snows.", "neutral"),
        ("Negation", 'He said "yes.', "He said\u2028no.", "neutral"),
        end=end,
    )
    samples = glue.read(path)
    assert [s.id for s in samples] == ["glue-0002", "glue-0005", "glue-0006"]
    assert samples[1].concepts == {"Negation;Universal"}, "a joint value is one concept"
    assert (samples[2].context, samples[2].question) == ('He said "yes.', "He said\u2028no.")


def test_glue_names_the_line_that_is_wrong(tmp_path: Path) -> None:
    path = diagnostics(tmp_path, ("Negation", "a", "b", "perhaps"))
    with pytest.raises(DataError, match=r"tsv:2: .* with the label entailment"):
        glue.read(path)
    path.write_text("Logic\tPremise\n")
    with pytest.raises(DataError, match="the columns must be"):
        glue.read(path)


def first_word(facts: list[str]) -> dict[str, str]:
    return {fact: fact.lower().split()[0] for fact in facts}


def test_openbookqa_has_1000_questions(shared_data: Path) -> None:
    folder = shared_data / "conceptual/openbookqa"
    rows = openbookqa.read_files(
        folder / f"{part}_complete.recon.jsonl" for part in ("dev", "test")
    )
    samples = openbookqa.samples(rows, first_word)
    assert len(samples) == len({s.id for s in samples}) == 1000
    assert {len(s.options) for s in samples} == {4}
    assert all(any(o.text == s.answer for o in s.options) for s in samples)


FILES_FORM = {
    "id": "7-1",
    "question": {
        "stem": "Which of these melts?",
        "choices": [{"label": "A", "text": "ice"}, {"label": "B", "text": "air"}],
    },
    "fact1": "Melts ice does",
    "answerKey": "A",
}


def test_the_archive_gives_samples_of_both_parts(tmp_path: Path) -> None:
    archive = tmp_path / "obqa.zip"
    with zipfile.ZipFile(archive, "w") as content:
        for part, row in (("dev", FILES_FORM), ("test", {**FILES_FORM, "id": "7-2"})):
            content.writestr(openbookqa.IN_ARCHIVE.format(part=part), json.dumps(row) + "\n\n")
    one, two = openbookqa.samples(openbookqa.read_archive(archive), first_word)
    assert (one.id, two.id) == ("7-1", "7-2")
    assert two.copy_key == one.copy_key
    assert one.concepts == {"melts"}
    assert (one.answer, one.answer_label) == ("ice", "A")


@pytest.mark.parametrize(
    "change", [{"answerKey": "C"}, {"fact1": None, "answerKey": None}, {"question": "?"}]
)
def test_openbookqa_names_the_line_that_is_wrong(change: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="dev:3: not a question"):
        openbookqa.samples([("dev:3", {**FILES_FORM, **change})], first_word)


def test_a_broken_archive_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match="not the archive"):
        openbookqa.read_archive(tmp_path / "x.zip")


def test_r4c_gives_the_papers_182_samples(shared_data: Path) -> None:
    explained = hotpotqa.concepts_of(shared_data / "conceptual/r4c/dev_csf.json")
    assert len(explained) == 2209
    rows = [
        {"id": name, "copy_key": name, "concepts": sorted(concepts)}
        for name, concepts in explained.items()
    ]
    chosen, left_out = fewshot.choose(rows, Rules(False, 0), 3, 0)
    assert len(chosen) == 182, "the paper's number"
    assert len(left_out[TOO_FEW]) == 2209 - 182
    for name, choice in chosen.items():
        for other in choice["concept"].ids:
            assert explained[name] & explained[other]
    # As the documentation says: some annotators found no relation, and these count, too.
    nothing = "None None"
    assert sum(nothing in concepts for concepts in explained.values()) == 10
    without = [{**row, "concepts": [c for c in row["concepts"] if c != nothing]} for row in rows]
    assert len(fewshot.choose(without, Rules(False, 0), 3, 0)[0]) == 173


def test_hotpotqa_is_joined_by_id(shared_data: Path, tmp_path: Path) -> None:
    """The authors' code joins by position; here the annotations stand in another order."""
    annotations = shared_data / "conceptual/r4c/dev_csf.json"
    questions = shared_data / "conceptual/hotpotqa/hotpot_dev_fullwiki.r4c_subset.json"
    turned = tmp_path / "turned.json"
    content = json.loads(annotations.read_text(encoding="utf-8"))
    turned.write_text(json.dumps(dict(reversed(content.items()))))
    samples = hotpotqa.read(questions, annotations)
    assert samples == hotpotqa.read(questions, turned)
    assert len(samples) == 175
    for sample in samples:
        triples = [triple for one in content[sample.id] for _, _, triple in one]
        assert sample.concepts == {f"{relation} {thing}" for _, relation, thing in triples}
    assert sum(not sample.context for sample in samples) == 2, "two have no paragraphs"


@pytest.mark.parametrize(
    ("name", "rows", "source"),
    [("glue", 310, "glue_diagnostics"), ("hotpotqa", 175, "hotpotqa_part+r4c")],
)
def test_the_loader_reads_available_data(
    name: str, rows: int, source: str, real_data: Path
) -> None:
    loaded = load.dataset(conceptual_dataset=name)["test"]
    assert len(loaded) == rows
    assert loaded.info.dataset_name == source
    assert load.dataset(conceptual_dataset=name)["test"]["id"] == loaded["id"]


def test_hotpotqa_takes_annotated_questions_only(tmp_path: Path) -> None:
    question = {"question": "Who?", "answer": "She", "context": [["T", ["One.", " Two."]]]}
    (tmp_path / "q.json").write_text(json.dumps([{"_id": n, **question} for n in "ab"]))
    (tmp_path / "r.json").write_text(json.dumps({"b": [[["T", 0, ["She", "is", "x"]]]]}))
    (sample,) = hotpotqa.read(tmp_path / "q.json", tmp_path / "r.json")
    assert (sample.id, sample.context, sample.concepts) == ("b", "T: One. Two.", {"is x"})
    (tmp_path / "r.json").write_text(json.dumps({"b": [[["T", 0]]]}))
    with pytest.raises(DataError, match="b has something other than triples"):
        hotpotqa.read(tmp_path / "q.json", tmp_path / "r.json")
    (tmp_path / "r.json").write_text("[1]")
    with pytest.raises(DataError, match="not an object"):
        hotpotqa.read(tmp_path / "q.json", tmp_path / "r.json")


def test_a_copy_of_a_question_may_come_with_other_paragraphs(tmp_path: Path) -> None:
    """Or with none, as some of HotpotQA's do."""
    contexts: list[list[Any]] = [[], [["T", ["One."]]], [["T", ["Long. " * 400]]]]
    rows = [
        {"_id": str(n), "question": "Who?", "answer": "She", "context": context}
        for n, context in enumerate(contexts)
    ]
    (tmp_path / "q.json").write_text(json.dumps(rows))
    triples = {str(n): [[["T", 0, ["She", "is", "x"]]]] for n in range(len(rows))}
    (tmp_path / "r.json").write_text(json.dumps(triples))
    samples = hotpotqa.read(tmp_path / "q.json", tmp_path / "r.json")
    assert len({sample.copy_key for sample in samples}) == 1


def test_a_premise_is_part_of_what_is_asked(tmp_path: Path) -> None:
    rows = [("Negation", premise, "It snows.", "neutral") for premise in ("It hails.", "No hail.")]
    one, other = glue.read(diagnostics(tmp_path, *rows))
    assert one.copy_key != other.copy_key


def test_the_main_concept_is_the_commonest() -> None:
    concepts = {"a": {"x", "y"}, "b": {"y", "z"}, "c": {"x", "y"}, "d": {"q", "p"}, "e": set()}
    samples = [Sample(name, "?", "!", frozenset(found)) for name, found in concepts.items()]
    assert main_concepts(samples) == {"a": "y", "b": "y", "c": "y", "d": "p", "e": ""}


def test_mini_has_six_concepts_with_enough_and_one_without() -> None:
    counts = Counter(concept for s in mini.samples() for concept in s.concepts)
    assert sorted(counts.values()) == [2, 6, 6, 6, 6, 6, 6]
    assert len({s.copy_key for s in mini.samples()}) == sum(counts.values())
    labels = Counter(s.answer_label for s in mini.samples())
    assert set(labels) == set("ABCD"), "the right option stands in every place"
    for sample in mini.samples():
        assert sample.answer in {option.text for option in sample.options}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("conceptual_dataset", "squad", "Input should be 'glue', .* got 'squad'"),
        ("conceptual_template", "nicest", "use options, choose, letter or all"),
        ("conceptual_template", ["letter"], "conceptual_template: Input should be a valid string"),
        ("conceptual_max_words", -1, "should be greater than or equal to 0, got -1"),
        ("conceptual_max_words", True, "conceptual_max_words: Input should be a valid integer"),
        ("conceptual_pipeline", 3, "conceptual_pipeline: Input should be a valid string"),
        ("conceptual_max_word", 3, "unknown metadata key"),
        ("conceptual_min_overlap", "0", "conceptual_min_overlap: Input should be a valid integer"),
        ("conceptual_control", "label", "Input should be 'none' or 'labels', got 'label'"),
        ("conceptual_bootstrap", "both", "Input should be 'paired' or 'independent', got 'both'"),
    ],
)
def test_illegal_options_are_refused_in_one_line(option: str, value: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message) as raised:
        load.dataset(**{"conceptual_dataset": "mini", option: value})
    assert "\n" not in str(raised.value)
