"""Reading the datasets: published counts, formats, pipelines, downloads; material for training."""

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
from lm_eval_ext.benchmarks.conceptual.demonstrations import SELECTIONS
from lm_eval_ext.benchmarks.conceptual.load import Options
from lm_eval_ext.benchmarks.conceptual.records import Option, Sample, main_concepts, plain
from lm_eval_ext.benchmarks.conceptual.training import read
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.harness.names import TOO_FEW
from lm_eval_ext.training.recipe import prepare as prepare_source

CASES = yaml.safe_load(Path(__file__).with_name("conceptual_cases.yaml").read_text())


@dataclass(frozen=True)
class Selection:
    """The demonstrations of each sample, and how many samples have too few companions."""

    choices: Mapping[str, Any]
    too_few: int


def select(samples: Sequence[Sample], k: int = 3, **options: Any) -> Selection:
    """Choose ``k`` demonstrations for each sample under these options."""
    rows = []
    for sample in samples:
        rows.append({"id": sample.id, "copy_key": sample.copy_key, "concepts": sample.concepts})
    choices, excluded = demonstrations.choose(rows, Options(**options), k, 1234)
    return Selection(choices, too_few=len(excluded.get(TOO_FEW, ())))


def test_glue_has_the_published_counts(shared_data: Path) -> None:
    """310 samples have 29 concepts; 282 have enough companions, as in the paper."""
    samples = load.glue(shared_data / "conceptual/glue_diagnostics/diagnostic-full.tsv")
    assert len(samples) == 310
    concepts: set[str] = set()
    for sample in samples:
        concepts |= sample.concepts
    assert len(concepts) == 29
    selection = select(samples)
    assert len(selection.choices) == 282, "the paper's number"
    assert selection.too_few == 28


@pytest.mark.parametrize(
    ("selection", "met_their_reverse"), list(zip(SELECTIONS, (5, 32), strict=True))
)
def test_a_swapped_pair_of_glue_is_no_copy(
    shared_data: Path, selection: str, met_their_reverse: int
) -> None:
    """Some samples are shown the pair with premise and hypothesis swapped, as documented."""
    samples = load.glue(shared_data / "conceptual/glue_diagnostics/diagnostic-full.tsv")
    pairs = {}
    for sample in samples:
        pairs[sample.id] = (plain(sample.context), plain(sample.question))
    count = 0
    for name, choice in select(samples).choices.items():
        premise, hypothesis = pairs[name]
        shown = {pairs[companion] for companion in choice[selection].ids}
        count += (hypothesis, premise) in shown
    assert count == met_their_reverse


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_glue_drops_repeats_and_rows_without_logic(tmp_path: Path, end: str) -> None:
    """Four of six rows stay, under any line ends; quotes and separators are characters."""
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
    assert [sample.id for sample in samples] == [
        "glue-0002",
        "glue-0005",
        "glue-0006",
        "glue-0007",
    ]
    _, joint, quoted, unquoted = samples
    assert joint.concepts == {"Negation;Universal"}, "a joint value is one concept"
    assert quoted.context == 'He said "yes.'
    assert quoted.question == "He said\u2028no."
    assert quoted.copy_key != unquoted.copy_key, "a premise is part of the question"


@pytest.mark.slow
def test_r4c_gives_the_papers_182_samples(shared_data: Path) -> None:
    """Of 2209 questions, 182 have three companions that share a relation and its object."""
    explained = load.r4c(shared_data / "conceptual/r4c/dev_csf.json")
    samples = [Sample(name, name, "", concepts) for name, concepts in explained.items()]
    selection = select(samples)
    assert len(selection.choices) == 182, "the paper's number"
    assert selection.too_few == 2209 - 182
    for name, choice in selection.choices.items():
        for companion in choice["concept"].ids:
            assert explained[name] & explained[companion]


@pytest.mark.slow
def test_absent_relations_count_in_r4c(shared_data: Path) -> None:
    """Some annotators found no relation, and as documented, these samples count, too."""
    explained = load.r4c(shared_data / "conceptual/r4c/dev_csf.json")
    nothing = {"None None"}
    assert sum(nothing <= concepts for concepts in explained.values()) == 10
    samples = [Sample(name, name, "", concepts - nothing) for name, concepts in explained.items()]
    assert len(select(samples).choices) == 173


def test_hotpotqa_is_joined_by_id(tmp_path: Path) -> None:
    """The authors' code joins by position. A copy of a question may come with other paragraphs."""
    contexts: dict[str, Any] = {
        "a": [],
        "b": [["T", ["One.", " Two."]]],
        "c": [["T", ["Long. " * 400]]],
        "d": [],
    }
    rows = []
    for name, context in contexts.items():
        rows.append({"_id": name, "context": context, "question": "Who?", "answer": "She"})
    questions = tmp_path / "q.json"
    questions.write_text(json.dumps(rows))
    triples = {name: [[["T", 0, ["She", "is", name]]]] for name in "xcba"}
    annotations = tmp_path / "r.json"
    annotations.write_text(json.dumps(triples))
    samples = load.hotpotqa(questions, annotations)
    assert [sample.id for sample in samples] == ["a", "b", "c"]
    assert [sample.concepts for sample in samples] == [{"is a"}, {"is b"}, {"is c"}]
    assert [sample.context for sample in samples[:2]] == ["", "T: One. Two."]
    assert len({sample.copy_key for sample in samples}) == 1


def test_the_loader_reads_available_data(real_data: Path) -> None:
    """Where only a part of the dataset lies, the provenance says so."""
    task = load.dataset.load({"conceptual_dataset": "hotpotqa"})
    assert len(task.dataset["test"]) == 175
    assert task.provenance.source == "hotpotqa_part+r4c"


def test_the_main_concept_is_the_commonest() -> None:
    """Of equally common concepts, the first in the alphabet; none where there is none."""
    concepts = {"a": "xy", "b": "yz", "c": "xy", "d": "qp", "e": ""}
    samples = [Sample(name, "?", "!", frozenset(letters)) for name, letters in concepts.items()]
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
    """Write an archive of WorldTree's form to its place in a copy of the data."""
    packed = folder / worldtree.FOLDER / f"{worldtree.NAME}.zip"
    packed.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(packed, "w") as content:
        for name, lines in files.items():
            content.writestr(name, "\n".join(lines) + "\n")
    return packed


# ACTION comes before KINDOF, so its row of f1 counts.
FACT_1 = "nobody thinks of it"
FACT_2 = "ice is a kind of cold thing"
FACT_3 = 'tea is "warm'

WORLDTREE_FACTS = {
    "Q1": (FACT_1, FACT_2),
    "Q2": (FACT_1, FACT_3),
    "Q3": (FACT_2,),
    "Q5": (FACT_3,),
    "Q6": (FACT_3,),
}
"""The facts of each question; Q4 has no explanation, and f9 is in no table."""


def test_every_trap_of_worldtrees_format(tmp_path: Path) -> None:
    """Brackets, quotes, line ends and repeated ids of the archive are read as they are meant."""
    samples = {sample.id: sample for sample in worldtree.read(pack(tmp_path, WORLDTREE))}
    questions = {name: (sample.question, sample.answer) for name, sample in samples.items()}
    assert questions == {
        "Q1": ("What is hot?", "fire"),
        "Q2": ("What is (very) cold?", "ice"),
        "Q3": ('Who said "no?', 'e "quoted'),
        "Q5": ("Which grade (A) is best?", "two"),
        "Q6": ('He said "why?', 'Compound"'),
    }, "Q4 has no explanation, and the quotes around Q6 are CSV's"
    assert {name: sample.facts for name, sample in samples.items()} == WORLDTREE_FACTS
    assert samples["Q5"].concepts == {"f3", "f9"}


def test_prompts_of_worldtree_show_the_largest_overlap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents have the facts that prompts show; the demonstration shares the most of them."""
    pack(tmp_path, WORLDTREE)
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))
    rows = list(load.dataset(conceptual_dataset="worldtree")["test"])
    assert {row["id"]: tuple(row["facts"]) for row in rows} == WORLDTREE_FACTS
    options = Options.model_validate({"dataset": "worldtree"})
    choices, _ = demonstrations.choose(rows, options, 1, 0)
    (picked,) = choices["Q5"]["concept"].picked
    assert picked.id in {"Q2", "Q6"}
    assert picked.why == "shares 1 of 2: f3"


@pytest.mark.parametrize("case", CASES["split"], ids=[case["text"] for case in CASES["split"]])
@pytest.mark.parametrize("right_option", [0, -1], ids=["first right", "last right"])
def test_options_are_split_from_questions(case: dict[str, Any], right_option: int) -> None:
    """Brackets that do not go on with the row of labels are text."""
    labels = list(case["options"])
    key = labels[right_option] if labels else "A"
    options = tuple(Option(label, text) for label, text in case["options"].items())
    assert worldtree.split_options(case["text"], key) == (case["question"], options)


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
    """The error names the file and the row, or what is wrong with the archive."""

    def accept_anything(*_: object) -> None:
        """Check no checksum, so that the damage reaches the reader."""

    monkeypatch.setattr("zipfile.ZipExtFile._update_crc", accept_anything)
    packed = pack(tmp_path, WORLDTREE)
    packed.write_bytes(packed.read_bytes().replace(old, new))
    with pytest.raises(DataError, match=message) as raised:
        worldtree.read(packed)
    assert "\n" not in str(raised.value)


def samples_like_worldtree() -> list[Sample]:
    """Return as many samples as the paper has, a tenth of which share no fact with others."""
    samples = []
    for number in range(2206):
        fact = f"alone{number}" if number % 10 == 0 else f"kind{number % 60}"
        samples.append(Sample(f"{number}", f"{number}?", "it", frozenset([fact])))
    return samples


def test_at_overlap_zero_the_paper_has_2204_of_2206() -> None:
    """All but two samples are in 551 clusters of four."""
    selection = select(samples_like_worldtree(), dataset="worldtree", min_overlap=0)
    assert len(selection.choices) == 2204
    assert selection.too_few == 2
    clusters = set()
    for name, choice in selection.choices.items():
        clusters.add(frozenset((name, *choice["concept"].ids)))
    assert len(clusters) == 551


def test_with_a_fact_in_common_fewer_samples_have_companions() -> None:
    """By default, samples whose fact is theirs alone have too few."""
    selection = select(samples_like_worldtree(), dataset="worldtree")
    assert len(selection.choices) == 2206 - 221


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the archive that a download copies."""
    packed = pack(tmp_path, WORLDTREE)
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", f"https://mirror{tmp_path}")

    def download(url: str, out: str, _: object) -> None:
        shutil.copy(url.removeprefix("https://mirror"), out)

    def downloader(**_: object) -> Callable[[str, str, object], None]:
        return download

    monkeypatch.setattr("pooch.HTTPDownloader", downloader)
    return packed


def test_terms_are_shown_once_and_damage_is_repaired(
    mirror: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first download shows terms; a damaged archive or a lost checksum is made up for."""
    archive = worldtree.archive()
    assert "non-commercial" in capsys.readouterr().err
    assert archive.path != mirror
    assert archive.path.read_bytes() == mirror.read_bytes()
    checksum = archive.path.with_name(f"{archive.path.name}.sha256")
    # A download that stopped between the archive and its checksum must not stay unguarded.
    checksum.unlink()
    assert worldtree.archive() == archive
    assert checksum.read_text() == archive.sha256
    archive.path.write_bytes(b"x")
    assert worldtree.archive() == archive
    assert checksum.read_text() == archive.sha256
    assert capsys.readouterr().err == ""


def test_a_later_download_is_compared_with_the_first(mirror: Path) -> None:
    """Where the source has another file now, the error says so, and none is left."""
    archive = worldtree.archive()
    archive.path.unlink()
    mirror.write_bytes(mirror.read_bytes() + b"x")
    with pytest.raises(DataError, match="checksum is not that of the first download") as raised:
        worldtree.archive()
    assert "\n" not in str(raised.value)
    assert not archive.path.exists()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LM_EVAL_EXT_MIRROR", "http://127.0.0.1:9", "check the network"),
        ("LM_EVAL_EXT_DATA", "nowhere", r"missing \(LM_EVAL_EXT_DATA is"),
    ],
)
def test_an_absent_archive_is_one_line(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says to check the network, or which folder lacks the file."""
    monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=message):
        worldtree.archive()


GENERATED: dict[str, Any] = {"generated": 120}
prepare = partial(prepare_source, training.__name__)


def test_prompts_have_two_to_five_other_questions_and_end_where_the_answer_begins() -> None:
    """A prompt shows different questions, never its own; the answer's words are in its text."""
    material = prepare(GENERATED | {"format": "input"}, 0)
    assert len(material.train) == 120
    assert len(material.dev) == 200
    counts = set()
    for prompt, answer in (*material.train, *material.dev):
        *shown, question = prompt.split("\n")
        counts.add(len(shown))
        assert question.endswith(" Prediction:")
        for demonstration in shown:
            assert re.fullmatch(r"Input: .+ Prediction: \S.*", demonstration)
            assert not demonstration.startswith(question)
        assert len(set(shown)) == len(shown)
        assert set(answer.removeprefix("on ").split()) <= set(re.findall(r"\w+", question))
    assert counts == {2, 3, 4, 5}


def test_training_has_nothing_of_the_development_set() -> None:
    """No text of it is in a prompt of training, which another seed changes; the gates stay."""
    material = prepare(GENERATED | {"format": "input"}, 0)
    of_another_seed = prepare(GENERATED | {"format": "input"}, 1)
    assert of_another_seed.gates == material.gates
    assert set(of_another_seed.train).isdisjoint(material.train)
    for prompt, _ in material.dev:
        question = prompt.split("\n")[-1]
        text = question.partition("?")[2]
        assert not any(text in train_prompt for train_prompt, _ in material.train)


def test_nothing_of_the_task_is_trained_on() -> None:
    """Each question of the task has a word that training has not."""
    material = prepare({"generated": 500}, 0)
    trained_words = set()
    for prompt, answer in material.train:
        trained_words.update(re.findall(r"\w+", f"{prompt}\n{answer}"))
    for sample in mini.samples():
        assert set(re.findall(r"\w+", sample.question)) - trained_words, sample.question


def test_the_format_is_the_published_one() -> None:
    """By default, prompts have questions, contexts and answers."""
    material = prepare({"generated": 500}, 0)
    pattern = r"(?:Question: [^?]*\? Context: .*? Answer:(?: [^?]*? (?=Question)|$))+"
    for prompt, _ in material.train[:40]:
        assert re.fullmatch(pattern, prompt), prompt


def test_prompts_that_are_too_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no prompt is short enough, nothing is left to train on, and the facts say so."""
    monkeypatch.setattr(training, "LONGEST_SHOWN", 10)
    material = prepare(GENERATED, 0)
    assert len(material.train) == 0
    assert material.facts["left_out"] == 120


def squad(*contexts: str, answers: tuple[str, ...] = ("Ann", "she")) -> str:
    """Return a file with the same question about each context, in SQuAD's format."""
    question = {"question": "Who  came?", "answers": [{"text": answer} for answer in answers]}
    paragraphs = [{"context": context, "qas": [question]} for context in contexts]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def test_questions_are_read_from_a_file(tmp_path: Path) -> None:
    """The first answer counts, and repeated spaces are one."""
    file = tmp_path / "questions"
    file.write_text(squad("Ann  came."))
    assert read(file) == [("Who came?", "Ann came.", "Ann")]


def test_files_with_questions_are_trained_on(tmp_path: Path) -> None:
    """Long texts are left out; the facts have each file's checksum, of equal names too."""
    file = tmp_path / "questions"
    long_text = "Ann came. " * 300
    file.write_text(squad(long_text, *(f"Ann came {number}." for number in range(9))))
    material = prepare({"train": str(file), "dev": str(file)}, 0)
    assert len(material.train) == 9
    assert len(material.dev) == 9
    checksum = sha256_of(file)
    assert material.facts["train"] == checksum
    assert material.facts["dev"] == checksum
    assert material.score("Ann.", "Ann") == 1.0
    assert material.score("Ben", "Ann") == 0.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid JSON"),
        ("[1]", "top level"),
        (squad("a", answers=()), "answers: List should have at least 1 item"),
    ],
    ids=["empty", "a list", "no answer"],
)
def test_a_broken_file_with_questions_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error says what the file lacks."""
    file = tmp_path / "questions"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read(file)


def test_a_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    """The error says that it cannot be read."""
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "give train and dev"),
        (GENERATED | {"train": "a"}, "give train and dev"),
        (GENERATED | {"demos": 1}, "unknown key"),
    ],
    ids=["nothing", "generated and a file", "unknown key"],
)
def test_options_that_do_not_fit_are_refused(data: dict[str, Any], message: str) -> None:
    """The error says which keys a recipe's data must have."""
    with pytest.raises(OptionError, match=message):
        prepare(data, 0)
