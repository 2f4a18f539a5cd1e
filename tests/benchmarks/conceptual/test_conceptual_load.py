"""Reading the datasets: published counts, formats, pipelines, downloads; material for training."""

import json
import re
import shutil
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from lm_eval_ext.atomic import sha256_of
from lm_eval_ext.benchmarks.conceptual import (
    demonstrations,
    load,
    mini,
    openbookqa,
    training,
    worldtree,
)
from lm_eval_ext.benchmarks.conceptual.demonstrations import SELECTIONS, TOO_FEW
from lm_eval_ext.benchmarks.conceptual.load import Options
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample, main_concepts, plain
from lm_eval_ext.benchmarks.conceptual.training import read
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.training.recipe import prepare as of_source

CASES = yaml.safe_load(Path(__file__).with_name("conceptual_cases.yaml").read_text())


def chosen(samples: list[Sample], k: int = 3, **options: Any) -> Any:
    """The choices, and how many samples have too few companions."""
    rows = [{"id": s.id, "copy_key": s.copy_key, "concepts": s.concepts} for s in samples]
    found, left_out = demonstrations.choose(rows, Options(**options), k, 1234)
    return found, len(left_out.get(TOO_FEW, ()))


def test_glue_has_the_published_counts(shared_data: Path) -> None:
    """And the documentation's: a pair with premise and hypothesis swapped is no copy."""
    samples = load.glue(shared_data / "conceptual/glue_diagnostics/diagnostic-full.tsv")
    assert len(samples) == 310
    assert len({concept for s in samples for concept in s.concepts}) == 29
    found, short = chosen(samples)
    assert (len(found), short) == (282, 28), "the paper's number"
    pairs = {s.id: (plain(s.context), plain(s.question)) for s in samples}
    met = [
        sum(any(pairs[other] == pairs[name][::-1] for other in one[selection].ids)
            for name, one in found.items())
        for selection in SELECTIONS
    ]  # fmt: skip
    assert met == [5, 32]


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_glue_drops_repeats_and_rows_without_logic(tmp_path: Path, end: str) -> None:
    rows = (
        ("Logic", "Premise", "Hypothesis", "Label"),
        ("Negation", "It snows a lot.", "It does not snow a lot.", "contradiction"),
        ("Negation", "a lot. It snows", "It rains.", "neutral"),
        ("", "It hails.", "It does not hail.", "contradiction"),
        ("Negation;Universal", "It snows a lot.", "All of it snows.", "neutral"),
        ("Negation", 'He said "yes.', "He said\u2028no.", "neutral"),
        ("Negation", "He said no.", "He said\u2028no.", "neutral"),
    )
    path = tmp_path / "diagnostic-full.tsv"
    path.write_bytes("".join("\t".join(row) + end for row in rows).encode())
    samples = load.glue(path)
    assert [one.id for one in samples] == [f"glue-000{n}" for n in (2, 5, 6, 7)]
    _, joint, quoted, other = samples
    assert joint.concepts == {"Negation;Universal"}, "a joint value is one concept"
    assert (quoted.context, quoted.question) == ('He said "yes.', "He said\u2028no.")
    assert quoted.copy_key != other.copy_key, "a premise is part of what is asked"


@pytest.mark.slow
def test_r4c_gives_the_papers_182_samples(shared_data: Path) -> None:
    explained = load.r4c(shared_data / "conceptual/r4c/dev_csf.json")
    samples = [Sample(name, name, "", concepts) for name, concepts in explained.items()]
    found, short = chosen(samples)
    assert (len(found), short) == (182, 2209 - 182), "the paper's number"
    for name, choice in found.items():
        assert all(explained[name] & explained[other] for other in choice["concept"].ids)
    # As the documentation says: some annotators found no relation, and these count, too.
    nothing = {"None None"}
    assert sum(nothing <= concepts for concepts in explained.values()) == 10
    without = [replace(one, concepts=one.concepts - nothing) for one in samples]
    assert len(chosen(without)[0]) == 173


def test_hotpotqa_is_joined_by_id(tmp_path: Path) -> None:
    """The authors' code joins by position. A copy of a question may come with other paragraphs."""
    contexts = {"a": [], "b": [["T", ["One.", " Two."]]], "c": [["T", ["Long. " * 400]]], "d": []}
    asked = {"question": "Who?", "answer": "She"}
    rows = [{"_id": name, "context": one} | asked for name, one in contexts.items()]
    triples = {name: [[["T", 0, ["She", "is", name]]]] for name in "xcba"}
    files = tmp_path / "q.json", tmp_path / "r.json"
    for file, content in zip(files, (rows, triples), strict=True):
        file.write_text(json.dumps(content))
    samples = load.hotpotqa(*files)
    assert [(s.id, s.concepts) for s in samples] == [(name, {f"is {name}"}) for name in "abc"]
    assert [s.context for s in samples[:2]] == ["", "T: One. Two."]
    assert len({sample.copy_key for sample in samples}) == 1


def test_the_loader_reads_available_data(real_data: Path) -> None:
    loaded = load.dataset.load({"conceptual_dataset": "hotpotqa"})
    assert len(loaded.dataset["test"]) == 175
    assert loaded.provenance.source == "hotpotqa_part+r4c"


def test_the_main_concept_is_the_commonest() -> None:
    concepts = {"a": "xy", "b": "yz", "c": "xy", "d": "qp", "e": ""}
    samples = [Sample(name, "?", "!", frozenset(found)) for name, found in concepts.items()]
    assert main_concepts(samples) == {"a": "y", "b": "y", "c": "y", "d": "p", "e": ""}


def test_mini_has_six_concepts_with_enough_and_one_without() -> None:
    samples = mini.samples()
    assert sorted(map(len, mini.concepts().values())) == [2, 6, 6, 6, 6, 6, 6]
    assert len({one.copy_key for one in samples}) == len(samples) == 38
    assert {one.answer_label for one in samples} == set("ABCD"), "right in every place"


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
    monkeypatch.setattr("lm_eval_ext.errors.find_spec", lambda _: None)
    with pytest.raises(OptionError, match=message) as raised:
        load.dataset(**{"conceptual_dataset": "mini", option: value})
    assert "\n" not in str(raised.value)


def test_openbookqa_has_1000_questions(shared_data: Path) -> None:
    files = sorted((shared_data / "conceptual/openbookqa").glob("*.recon.jsonl"))
    samples = openbookqa.read(files, lambda facts: {fact: fact.split()[0] for fact in facts})
    assert len({one.id for one in samples}) == 1000
    assert {len(one.options) for one in samples} == {4}
    assert all(Option(one.answer_label, one.answer) in one.options for one in samples)


@pytest.mark.slow
def test_roots_are_what_the_parse_marks_in_lower_case(tmp_path: Path) -> None:
    """By a tiny pipeline, trained on sentences of our own; one without a parser is refused."""
    spacy = pytest.importorskip("spacy")
    from support import spacy_pipeline

    folder = spacy_pipeline.trained()
    nlp, verbs = openbookqa.pipeline(str(folder)), spacy_pipeline.FACTS
    found = openbookqa.roots(verbs, nlp)
    assert len(found.items() & verbs.items()) > 0.9 * len(verbs), "it has learnt its sentences"
    assert openbookqa.roots(["ICE"], nlp) == {"ICE": "ice"}
    # Another version is another label, wherever the same one lies.
    spacy_pipeline.copy(folder, tmp_path / "new", version="1.2.4")
    other = openbookqa.label(openbookqa.pipeline(str(tmp_path / "new")))
    assert re.fullmatch(r"en_tiny-1\.2\.4-[0-9a-f]{8}", other)
    assert other[-8:] != openbookqa.label(nlp)[-8:]
    (tmp_path / "new/config.cfg").write_text("[nlp]\n")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(OptionError, match="finds no root"):
        openbookqa.roots(["ice melts"], openbookqa.pipeline(str(tmp_path / "blank")))
    openbookqa.pipeline.cache_clear()
    for named in ("en_no_such_pipeline", "no/such/folder", str(tmp_path / "new")):
        with pytest.raises(OptionError, match="python -m spacy download") as raised:
            load.dataset(conceptual_dataset="openbookqa", conceptual_pipeline=named)
        assert "\n" not in str(raised.value)


WORLDTREE = {
    worldtree.QUESTIONS: [
        "QuestionID\tAnswerKey\texplanation\tquestion\tarcset",
        "Q1\tA\tf1|CENTRAL f2|GROUNDING f1|LEXGLUE\tWhat is hot? (A) fire (B) ice\tEasy",
        "Q2\t2\tf1|CENTRAL f3|CENTRAL\tWhat is (very) cold? (1) fire (2) ice (3) tea\tEasy",
        'Q3\tE\tf2|CENTRAL\tWho said "no? (A) a (B) b (C) c (D) d (E) e "quoted\tChallenge',
        "Q4\tB\t\tWhat has no reason? (A) this (B) that\tEasy",
        "Q5\tB\tf3|CENTRAL f9|CENTRAL\tWhich grade (A) is best? (A) one (B) two\tEasy",
        # Quoted, since quotes are in it.
        'Q6\tB\tf3|CENTRAL\t"He said ""why? (A) ""a"" (B) Compound"""\tEasy',
    ],
    # A quote that is a character, a column that is no text, and columns that are called alike.
    f"{worldtree.TABLES}KINDOF.tsv": [
        "NOUN\tLINK\t\tNOUN\t[SKIP] COMMENTS\t[SKIP] UID",
        'fire\tis a kind of\t"\thot thing\tnobody reads this\tf1',
        "ice\tis a kind of\t\tcold thing\t\tf2",
    ],
    # f1 again, with another text; and CRLF line ends.
    f"{worldtree.TABLES}ACTION.tsv": [
        "DOER\tDOES\t[SKIP] DEP\t[SKIP] UID\r",
        "nobody\tthinks of it\t\tf1\r",
        'tea\tis "warm\tx\tf3\r',
    ],
    f"{worldtree.TABLES}notes.txt": ["no table"],
}


def pack(folder: Path, files: dict[str, list[str]]) -> Path:
    """An archive of WorldTree's form at its place in a copy of the data."""
    packed = folder / worldtree.FOLDER / f"{worldtree.NAME}.zip"
    packed.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(packed, "w") as content:
        for name, lines in files.items():
            content.writestr(name, "\n".join(lines) + "\n")
    return packed


def test_every_trap_of_worldtrees_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = worldtree.read(pack(tmp_path, WORLDTREE))
    # ACTION comes before KINDOF: the first row counts.
    f1, f2, f3 = "nobody thinks of it", "ice is a kind of cold thing", 'tea is "warm'
    assert {one.id: (one.question, one.answer, one.facts) for one in samples} == {
        "Q1": ("What is hot?", "fire", (f1, f2)),
        "Q2": ("What is (very) cold?", "ice", (f1, f3)),
        "Q3": ('Who said "no?', 'e "quoted', (f2,)),
        "Q5": ("Which grade (A) is best?", "two", (f3,)),
        "Q6": ('He said "why?', 'Compound"', (f3,)),
    }, "Q4 has no explanation, f9 stands in no table, and of Q6 the quotes are CSV's"
    assert samples[3].concepts == {"f3", "f9"}
    # The demonstration with the largest overlap, and the facts that prompts show.
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))
    rows = list(load.dataset(conceptual_dataset="worldtree")["test"])
    assert {row["id"]: tuple(row["facts"]) for row in rows} == {s.id: s.facts for s in samples}
    (shown,) = demonstrations.choose(rows, Options(dataset="worldtree"), 1, 0)[0]["Q5"][
        "concept"
    ].picked
    assert (shown.id in {"Q2", "Q6"}, shown.why) == (True, "shares 1 of 2: f3")


@pytest.mark.parametrize(("text", "question", "options"), CASES["split"])
@pytest.mark.parametrize("place", [0, -1])
def test_options_are_split_from_questions(
    text: str, question: str, options: str, place: int
) -> None:
    found = re.findall(r"(\w):(.*?)(?= \w:|$)", options)
    key = found[place][0] if found else "A"
    pairs = tuple(Option(label, content) for label, content in found)
    assert worldtree.split_options(text, key) == (question, pairs)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"Q1\tA", b"Q1\tD", r"row 2: ValueError"),
        (b"\tAnswerKey", b"\tAnswerRey", r"row 2: KeyError"),
        (b"[SKIP] UID\r", b"[SKIP] UiD\r", r"ACTION\.tsv: ValueError"),
        (b"thinks", b"think\xff", r"ACTION\.tsv: UnicodeDecodeError"),
        (b"PK", b"KP", r"zip: BadZipFile"),
    ],
)
def test_a_damaged_archive_is_one_line(
    old: bytes, new: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zipfile.ZipExtFile._update_crc", lambda *_: None)
    packed = pack(tmp_path, WORLDTREE)
    packed.write_bytes(packed.read_bytes().replace(old, new))
    with pytest.raises(DataError, match=message) as raised:
        worldtree.read(packed)
    assert "\n" not in str(raised.value)


def test_at_overlap_zero_the_paper_has_2204_of_2206() -> None:
    """551 clusters of four; with at least one fact in common, fewer samples have companions."""
    facts = [f"alone{n}" if n % 10 == 0 else f"kind{n % 60}" for n in range(2206)]
    samples = [Sample(f"{n}", f"{n}?", "it", frozenset([one])) for n, one in enumerate(facts)]
    found, short = chosen(samples, dataset="worldtree", min_overlap=0)
    assert (len(found), short) == (2204, 2)
    assert len({frozenset((name, *one["concept"].ids)) for name, one in found.items()}) == 551
    assert len(chosen(samples, dataset="worldtree")[0]) == 2206 - 221


def test_the_first_download_shows_terms_and_later_ones_are_compared_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = pack(tmp_path, WORLDTREE)
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", f"https://mirror{tmp_path}")

    def download(url: str, out: str, _: Any) -> None:
        shutil.copy(url.removeprefix("https://mirror"), out)

    monkeypatch.setattr("pooch.HTTPDownloader", lambda **_: download)
    first = worldtree.archive()
    assert "non-commercial" in capsys.readouterr().err
    assert first.path.read_bytes() == there.read_bytes() and first.path != there
    note = first.path.with_name(f"{first.path.name}.sha256")
    # Stopped between the archive and its note, it must not stay unguarded for ever; what was
    # damaged here is downloaded again.
    for mishap in (note.unlink, lambda: first.path.write_bytes(b"x")):
        mishap()
        assert worldtree.archive() == first
        assert note.read_text() == first.sha256
    assert capsys.readouterr().err == "", "terms are shown once"
    first.path.unlink()
    there.write_bytes(there.read_bytes() + b"x")
    with pytest.raises(DataError, match="checksum is not that of the first download") as raised:
        worldtree.archive()
    assert "\n" not in str(raised.value)
    assert not first.path.exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LM_EVAL_EXT_MIRROR", "http://127.0.0.1:9", "check the network"),
        ("LM_EVAL_EXT_DATA", "nowhere", r"missing \(LM_EVAL_EXT_DATA is"),
    ],
)
def test_what_is_not_there_is_one_line(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=message):
        worldtree.archive()


GENERATED: dict[str, Any] = {"generated": 120}
prepare = partial(of_source, training.__name__)


def test_prompts_have_two_to_five_other_questions_and_end_where_the_answer_begins() -> None:
    made, other = (prepare(GENERATED | {"format": "input"}, seed) for seed in (0, 1))
    assert [len(made.train), len(made.dev)] == [120, 200]
    assert other.gates == made.gates
    assert set(other.train).isdisjoint(made.train)
    counts = set()
    for prompt, answer in (*made.train, *made.dev):
        *shown, asked = prompt.split("\n")
        counts.add(len(shown))
        assert asked.endswith(" Prediction:")
        assert all(re.fullmatch(r"Input: .+ Prediction: \S.*", one) for one in shown)
        assert not any(one.startswith(asked) for one in shown), "never itself"
        assert len(set(shown)) == len(shown)
        assert set(answer.removeprefix("on ").split()) <= set(re.findall(r"\w+", asked))
    assert counts == {2, 3, 4, 5}
    texts = {prompt.split("\n")[-1].partition("?")[2] for prompt, _ in made.dev}
    assert not any(text in prompt for prompt, _ in made.train for text in texts)


def test_nothing_of_the_task_is_trained_on_and_the_format_is_the_published_one() -> None:
    made = prepare({"generated": 500}, 0)
    words = {word for text in made.train for part in text for word in re.findall(r"\w+", part)}
    asked = [sample.question for sample in mini.samples()]
    assert not [one for one in asked if set(re.findall(r"\w+", one)) <= words]
    pattern = r"(?:Question: [^?]*\? Context: .*? Answer:(?: [^?]*? (?=Question)|$))+"
    assert all(re.fullmatch(pattern, prompt) for prompt, _ in made.train[:40])


def test_prompts_that_are_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "LONGEST_SHOWN", 10)
    none = prepare(GENERATED, 0)
    assert (len(none.train), none.facts["left_out"]) == (0, 120)


def squad(*contexts: str, answers: tuple[str, ...] = ("Ann", "she")) -> str:
    asked = {"question": "Who  came?", "answers": [{"text": one} for one in answers]}
    paragraphs = [{"context": one, "qas": [asked]} for one in contexts]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def test_files_with_questions(tmp_path: Path) -> None:
    file = tmp_path / "questions"
    file.write_text(squad("Ann  came."))
    assert read(file) == [("Who came?", "Ann came.", "Ann")]
    file.write_text(squad("Ann came. " * 300, *(f"Ann came {n}." for n in range(9))))
    made = prepare({"train": str(file), "dev": str(file)}, 0)
    assert len(made.train) == len(made.dev) == 9, "one text is too long"
    assert {made.facts[one] for one in ("train", "dev")} == {sha256_of(file)}, "of the same name"
    assert [made.score(one, "Ann") for one in ("Ann.", "Ben")] == [1.0, 0.0]
    for text, said in (
        ("", "Invalid JSON"),
        ("[1]", "top level"),
        (squad("a", answers=()), "answers: List should have at least 1 item"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
            read(file)
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)


def test_options_that_do_not_fit_are_refused() -> None:
    for data, said in (
        ({}, "give train and dev"),
        (GENERATED | {"train": "a"}, "give train and dev"),
        (GENERATED | {"demos": 1}, "unknown key"),
    ):
        with pytest.raises(OptionError, match=said):
            prepare(data, 0)
