"""WorldTree: the format of its archive, prompts made from it, and its download."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lm_eval_ext.benchmarks.conceptual import demonstrations, load, worldtree
from lm_eval_ext.benchmarks.conceptual.load import Options
from lm_eval_ext.benchmarks.conceptual.records import Option
from lm_eval_ext.errors import DataError

SPLIT_CASES = yaml.safe_load(Path(__file__).with_name("conceptual_cases.yaml").read_text())["split"]


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


@pytest.mark.parametrize("case", SPLIT_CASES, ids=[case["text"] for case in SPLIT_CASES])
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
    ids=["no such option", "no answer key", "no id", "no UTF-8", "no archive"],
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
    """The error says that the source has another file now, and none is left."""
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
    ids=["no network", "no folder"],
)
def test_an_absent_archive_is_one_line(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says to check the network, or which folder lacks the file."""
    monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=message):
        worldtree.archive()
