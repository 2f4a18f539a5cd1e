"""WorldTree's format and its pitfalls, in files of our own; obtaining its archive."""

import http.server
import re
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lm_eval_ext.benchmarks.conceptual import fewshot, load, worldtree
from lm_eval_ext.benchmarks.conceptual.fewshot import TOO_FEW, Rules
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.errors import DataError

QUESTION_COLUMNS = "QuestionID\tAnswerKey\texplanation\tquestion\tarcset"
QUESTIONS = [
    ("Q1", "A", "f1|CENTRAL f2|GROUNDING f1|LEXGLUE", "What is hot? (A) fire (B) ice", "Easy"),
    ("Q2", "2", "f1|CENTRAL f3|CENTRAL", "What is (very) cold? (1) fire (2) ice (3) tea", "Easy"),
    ("Q3", "E", "f2|CENTRAL", 'Who said "no? (A) a (B) b (C) c (D) d (E) e "quoted', "Challenge"),
    ("Q4", "B", "", "What has no reason? (A) this (B) that", "Easy"),
    ("Q5", "B", "f3|CENTRAL f9|CENTRAL", "Which grade (A) is best? (A) one (B) two", "Easy"),
    # Quoted, since quotes are in them.
    ("Q6", "B", "f3|CENTRAL", '"He said ""why? (A) ""a"" (B) Compound"""', "Easy"),
]
TABLES = {
    # A quote that is a character, a column that is no text, and columns that are called alike.
    "KINDOF.tsv": [
        "NOUN\tLINK\t\tNOUN\t[SKIP] COMMENTS\t[SKIP] UID",
        'fire\tis a kind of\t"\thot thing\tnobody reads this\tf1',
        "ice\tis a kind of\t\tcold thing\t\tf2",
    ],
    # f1 again, with another text; and CRLF line ends.
    "ACTION.tsv": [
        "DOER\tDOES\t[SKIP] DEP\t[SKIP] UID\r",
        "nobody\tthinks of it\t\tf1\r",
        'tea\tis "warm\tx\tf3\r',
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An unpacked archive in a local copy."""
    top = tmp_path / "copy" / worldtree.FOLDER / worldtree.NAME
    tables = top / worldtree.TABLES
    tables.mkdir(parents=True)
    (top / "questions").mkdir()
    rows = [QUESTION_COLUMNS, *("\t".join(row) for row in QUESTIONS)]
    (top / worldtree.QUESTIONS).write_text("\n".join(rows) + "\n")
    for name, lines in TABLES.items():
        (tables / name).write_bytes(("\n".join(lines) + "\n").encode())
    (tables / "notes.txt").write_text("no table")
    return top


def pack(top: Path) -> Path:
    packed = top.with_name(f"{top.name}.zip")
    with zipfile.ZipFile(packed, "w") as content:
        for path in sorted(top.rglob("*")):
            content.write(path, path.relative_to(top.parent))
    return packed


def test_every_trap_of_the_format(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert worldtree.read_facts(folder) == {
        "f1": "nobody thinks of it",  # ACTION comes before KINDOF: the first row counts
        "f2": "ice is a kind of cold thing",
        "f3": 'tea is "warm',
    }
    samples = {sample.id: sample for sample in worldtree.read(folder)}
    assert list(samples) == ["Q1", "Q2", "Q3", "Q5", "Q6"], "Q4 has no explanation"
    assert samples["Q1"].concepts == {"f1", "f2"}
    assert samples["Q1"].facts == ("nobody thinks of it", "ice is a kind of cold thing")
    assert (samples["Q1"].question, samples["Q1"].answer) == ("What is hot?", "fire")
    assert samples["Q2"].answer == "ice"
    assert samples["Q2"].question == "What is (very) cold?"
    assert samples["Q3"].answer == 'e "quoted'
    assert samples["Q3"].question == 'Who said "no?'
    assert samples["Q6"].question == 'He said "why?', "as CSV has it"
    assert [option.text for option in samples["Q6"].options] == ['"a"', 'Compound"']
    assert samples["Q5"].question == "Which grade (A) is best?"
    assert samples["Q5"].facts == ('tea is "warm',), "f9 stands in no table"
    assert samples["Q5"].concepts == {"f3", "f9"}


def test_packed_and_unpacked_are_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(folder.parents[2]))
    unpacked = worldtree.read(worldtree.get().content)
    pack(folder)
    assert worldtree.read(worldtree.get().content) == unpacked


@pytest.mark.parametrize(
    ("text", "question", "options"),
    [
        ("Why? (A) x (B) y", "Why?", "A:x B:y"),
        ("Why? (1) x (2) y (3) z", "Why?", "1:x 2:y 3:z"),
        ("Is (A) it? (A) x (B) y(B)", "Is (A) it?", "A:x B:y(B)"),
        # Brackets in options: what does not go on with the row of labels is text.
        ("Why? (A) x (B) y (C) both (A) and (B) here", "Why?", "A:x B:y C:both (A) and (B) here"),
        ("Why? (A) type (1) gas (B) type (2) gas", "Why?", "A:type (1) gas B:type (2) gas"),
        ("Why? (1) vitamin (A) too (2) none", "Why?", "1:vitamin (A) too 2:none"),
        ("Is (1) or (2) it? (A) x (B) y (C) z", "Is (1) or (2) it?", "A:x B:y C:z"),
        ("One bracket (A) only", "One bracket (A) only", ""),
        ("No options here", "No options here", ""),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("place", [0, -1])
def test_options_are_split_from_questions(
    text: str, question: str, options: str, place: int
) -> None:
    found = re.findall(r"(\w):(.*?)(?= \w:|$)", options)
    key = found[place][0] if found else "A"
    pairs = tuple(Option(label, content) for label, content in found)
    assert worldtree.split_options(text, key) == (question, pairs)


def test_a_key_without_option_is_named(folder: Path) -> None:
    file = folder / worldtree.QUESTIONS
    file.write_text(file.read_text().replace("Q1\tA", "Q1\tD"))
    with pytest.raises(DataError, match=r"train\.tsv:2: the key 'D'"):
        worldtree.read(folder)


def test_a_quote_that_nobody_closes_is_named(folder: Path) -> None:
    """It would swallow the rest of the file."""
    file = folder / worldtree.QUESTIONS
    file.write_text(file.read_text().replace("What is hot?", '"What is hot?').replace('""', "'"))
    with pytest.raises(DataError, match="a quote is not closed"):
        worldtree.read(folder)


@pytest.mark.parametrize("missing", [worldtree.QUESTIONS, worldtree.TABLES])
def test_a_missing_part_is_named(folder: Path, missing: str) -> None:
    (folder / missing).rename(folder / "elsewhere")
    with pytest.raises(DataError, match="is missing"):
        worldtree.read(folder)


def test_overlap_decides_and_facts_are_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(folder.parents[2]))
    rows = list(load.dataset(conceptual_dataset="worldtree")["test"])
    chosen, _ = fewshot.choose(rows, Rules(True, 0), 1, 0)
    assert chosen["Q5"]["concept"].ids[0] in {"Q2", "Q6"}
    assert chosen["Q5"]["concept"].picked[0].why == "shares 1 of 2: f3"
    assert {row["id"]: row["facts"] for row in rows}["Q1"][0] == "nobody thinks of it"


def test_at_overlap_zero_the_paper_has_2204_of_2206(tmp_path: Path) -> None:
    """551 clusters of four; with at least one fact in common, fewer samples have companions.

    The files are as large as WorldTree's: 2,206 explained questions, and one without explanation.
    Questions of a kind share a fact with the others of the kind, and a tenth shares with nobody.
    """
    top = tmp_path / worldtree.NAME
    (top / worldtree.TABLES).mkdir(parents=True)
    (top / "questions").mkdir()
    kinds = [f"alone{n}" if n % 10 == 0 else f"kind{n % 60}" for n in range(2206)]
    rows = [
        f"Q{n}\tA\t{kind}|CENTRAL own{n}|LEXGLUE\tWhat is {n}? (A) it (B) {n}\tEasy"
        for n, kind in enumerate(kinds)
    ]
    rows.append("Q2206\tA\t\tWhat has no reason? (A) this (B) that\tEasy")
    (top / worldtree.QUESTIONS).write_text("\n".join([QUESTION_COLUMNS, *rows]) + "\n")
    facts = sorted({*kinds, *(f"own{n}" for n in range(2206))})
    table = ["FACT\t[SKIP] UID", *(f"{fact} holds\t{fact}" for fact in facts)]
    (top / worldtree.TABLES / "FACTS.tsv").write_text("\n".join(table) + "\n")
    samples = worldtree.read(top)
    rows_of = [
        {"id": s.id, "copy_key": s.copy_key, "concepts": sorted(s.concepts)} for s in samples
    ]
    assert len(samples) == 2206
    chosen, left_out = fewshot.choose(rows_of, Rules(True, 0, min_overlap=0), 3, 1234)
    assert (len(chosen), len(left_out[TOO_FEW])) == (2204, 2)
    clusters = {frozenset((name, *one["concept"].ids)) for name, one in chosen.items()}
    assert len(clusters) == 551, "disjoint, each sample in its own"
    concepts = {s.id: s.concepts for s in samples}
    together = sum(len(frozenset.union(*map(concepts.__getitem__, one))) == 5 for one in clusters)
    assert 551 / 2 < together < 551, "four of a kind, but who shares with nobody takes anybody"
    some = fewshot.choose(rows_of, Rules(True, 0), 3, 1234)[0]
    assert len(some) == sum(not kind.startswith("alone") for kind in kinds)
    assert fewshot.choose(rows_of, Rules(True, 0, min_overlap=2), 3, 1234)[0] == {}


@pytest.fixture
def mirror(folder: Path) -> Iterator[str]:
    """A server that has the archive at its place in a copy."""
    pack(folder)
    handler = partial(_Quiet, directory=str(folder.parents[2]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def test_the_first_download_shows_terms_and_later_ones_are_compared_with_it(
    mirror: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", mirror)
    first = worldtree.get()
    assert "non-commercial" in capsys.readouterr().err
    assert [s.id for s in worldtree.read(first.content)] == ["Q1", "Q2", "Q3", "Q5", "Q6"]
    assert worldtree.get().sha256 == first.sha256
    assert capsys.readouterr().err == "", "terms are shown once"
    packed = worldtree.cache_dir() / "data" / worldtree.FOLDER / f"{worldtree.NAME}.zip"
    packed.write_bytes(packed.read_bytes() + b"x")
    with pytest.raises(DataError, match="differs from that of the first download"):
        worldtree.get()


def test_a_download_that_was_cut_off_is_noted_at_the_next_look(
    mirror: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between the archive and its note, it must not stay unguarded for ever."""
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", mirror)
    worldtree.get()
    packed = worldtree.cache_dir() / "data" / worldtree.FOLDER / f"{worldtree.NAME}.zip"
    note = packed.with_name(f"{packed.name}.first-seen.json")
    whole = note.read_text()
    note.unlink()
    worldtree.get()
    assert note.read_text() == whole
    note.write_text("{")
    with pytest.raises(DataError, match=r"first-seen\.json") as raised:
        worldtree.get()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("damage", [b"\xff", b"A"])
def test_a_damaged_table_in_the_archive_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    """Another byte than was packed, or one that is no UTF-8."""
    table = folder / worldtree.TABLES / "ACTION.tsv"
    if damage == b"\xff":
        table.write_bytes(table.read_bytes() + damage)
    packed = pack(folder)
    if damage == b"A":
        packed.write_bytes(packed.read_bytes().replace(b"nobody thinks", b"nobody thinkA"))
        packed.write_bytes(packed.read_bytes().replace(b"thinks of it", b"thinkA of it"))
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(folder.parents[2]))
    with pytest.raises(DataError, match=r"ACTION\.tsv") as raised:
        worldtree.read(worldtree.get().content)
    assert "\n" not in str(raised.value)


def test_no_server_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LM_EVAL_EXT_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(DataError, match="check the network") as raised:
        worldtree.get()
    assert "\n" not in str(raised.value)
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(tmp_path))
    with pytest.raises(DataError, match="LM_EVAL_EXT_DATA"):
        worldtree.get()
