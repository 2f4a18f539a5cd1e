"""SLOG: its files, its prompts, and the scores of answers in both notations."""

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.slog import demonstrations, load, score
from lm_eval_ext.benchmarks.slog.answers import READERS
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.training.recipe import prepare

COGS = "* bed ( x _ 6 ) ; see . agent ( x _ 1 , Mia ) AND see . theme ( x _ 1 , x _ 3 ) AND dog ( x _ 3 ) AND dog . nmod . on ( x _ 3 , x _ 6 )"  # noqa: E501
VARFREE = "see ( agent = Mia , theme = dog ( nmod . on = * bed ) )"


ENDLESS = ("give ( agent = * girl ( nmod = " * 3_000).strip()


@pytest.fixture
def folder(real_data: Path) -> Path:
    """Return the folder of the authors' files, or skip the test without it."""
    files = real_data / "slog"
    if not files.is_dir():
        pytest.skip("the authors' files (slog) are not available here")
    return files


@pytest.mark.parametrize(
    ("gold", "answer", "exact", "closed", "equivalent"),
    [
        # The same form.
        (VARFREE, VARFREE, 1, 1, 1),
        (VARFREE, " see ( agent=Mia, theme = dog ( nmod.on = * bed ) )  ", 1, 1, 1),
        (VARFREE, VARFREE.removesuffix(" ) )"), 0, 1, 0),
        (VARFREE, "see(agent = Mia , theme = dog(nmod . on = *bed))", 0, 0, 1),
        (VARFREE, "see ( theme = dog ( nmod . on = * bed ) , agent = Mia )", 0, 0, 1),
        (COGS, COGS, 1, 1, 1),
        (COGS, COGS.replace("x _ 3", "x _ 17"), 0, 0, 1),
        (COGS, COGS.replace("dog ( x _ 3 ) AND ", "") + " AND dog ( x _ 3 )", 0, 0, 1),
        ("Mia", "Mia", 1, 1, 1),
        # Another one.
        (VARFREE, "see ( theme = Mia , agent = dog ( nmod . on = * bed ) )", 0, 0, 0),
        (VARFREE, "see ( agent = Mia , theme = dog ) ( nmod . on = * bed )", 0, 0, 0),
        (VARFREE, "see ( agent = Mia ( nmod . on = * bed ) , theme = dog )", 0, 0, 0),
        (VARFREE, "see ( agent = Mia , theme = * dog ( nmod . on = bed ) )", 0, 0, 0),
        (VARFREE, VARFREE + " )", 0, 0, 0),
        (VARFREE, "( " * 40_000, 0, 0, 0),
        (VARFREE, "", 0, 0, 0),
        (COGS, COGS.replace("x _ 6 )", "x _ 3 )"), 0, 0, 0),
        (COGS, COGS.replace("agent", "theme"), 0, 0, 0),
        (COGS, COGS.replace("; ", "AND "), 0, 0, 0),
        (COGS, "see . agent ( x _ 1 , Mia", 0, 0, 0),
    ],
)
def test_scores(gold: str, answer: str, exact: int, closed: int, equivalent: int) -> None:
    """The exact match knows spaces, the closed form brackets, and equivalence what forms mean."""
    notation = "cogs" if gold == COGS else "varfree"
    assert score.score(answer, gold, notation) == {
        "exact_match": exact, "closed": closed, "equivalent": equivalent,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        (f"### Input: Mia saw a dog . ### Output:\n{VARFREE}", VARFREE),
        (f"```\n{VARFREE}\n```", VARFREE),
        (f"Here it is:\n\n```text\n{COGS}\n```\nGood luck!", COGS),
        (f"<think>see (\n\n{COGS}\n</think>\n`{VARFREE}`", VARFREE),
        (f"{VARFREE}\n\nSentence: Who ran ?\nrun ( agent = ? )", VARFREE),
        (f"Logical form: {VARFREE}", VARFREE),
        (f"{VARFREE} ### Input: Who ran ? ### Output: run ( agent = ? )", VARFREE),
        ("Mia", "Mia"),
        ("I cannot do that (yet).\nSorry", "I cannot do that (yet).\nSorry"),
        ("", ""),
        (ENDLESS, ENDLESS),  # in linear time
    ],
)
def test_the_form_in_an_answer(answer: str, form: str) -> None:
    """Markup, thoughts, labels and further examples are no part of the form."""
    notation = "cogs" if form == COGS else "varfree"
    assert READERS[notation].read(answer) == form


Change = Callable[[str, random.Random], str]


def reordered(form: str, rng: random.Random) -> str:
    """Return a form with the arguments of every word in another order.

    Brackets are replaced by the numbers of their texts, innermost first, and put back.
    """
    bracket_texts: list[str] = []

    def replace_bracket(bracket: re.Match[str]) -> str:
        arguments = bracket[1].split(" , ")
        rng.shuffle(arguments)
        bracket_texts.append(f"( {' , '.join(arguments)} )")
        return f"#{len(bracket_texts) - 1}#"

    def put_back(number: re.Match[str]) -> str:
        return bracket_texts[int(number[1])]

    while "(" in form:
        form = re.sub(r"\( ([^()]*) \)", replace_bracket, form)
    while "#" in form:
        form = re.sub("#([0-9]+)#", put_back, form)
    return form


def other_role(form: str, rng: random.Random) -> str:
    old, new = rng.sample(("agent", "theme", "recipient"), 2)
    return re.sub(rf"\b{old}\b", new, form, count=1)


def moved_bracket(form: str, rng: random.Random) -> str:
    tokens = form.split()
    closing = [index for index, token in enumerate(tokens) if token == ")"]
    del tokens[rng.choice(closing)]
    tokens.insert(rng.randrange(1, len(tokens)), ")")
    return " ".join(tokens)


@pytest.mark.parametrize(
    ("change", "right"), [(reordered, True), (other_role, False), (moved_bracket, False)]
)
def test_rates_on_gold_forms(folder: Path, change: Change, right: bool) -> None:
    """All changed golds of 500 are judged right by `equivalent`, or all wrong.

    Those in COGS's notation are in tests/test_logical_forms.py.
    """
    rng = random.Random(0)
    count = 0
    for example in load.read(folder / "generalization_sets.zip", "varfree")[::34]:
        changed = change(example.form, rng)
        if changed != example.form:
            scores = score.score(changed, example.form, "varfree")
            assert scores["exact_match"] == 0, (changed, example.form)
            assert scores["equivalent"] == right, (changed, example.form)
            count += 1
    assert count > 200


@pytest.mark.parametrize("form", ["cogs", "varfree"])
def test_golds_of_gen_are_right(folder: Path, form: str) -> None:
    """All types have 1,000 documents, whose golds are right; long ones are counted."""
    docs = load.dataset(slog_form=form)["test"].to_list()
    assert set(Counter(doc["type"] for doc in docs).values()) == {1000}
    for doc in docs[::20]:
        (row,) = score.process_results(doc, [doc["form"]], 256)
        assert row["exact_match"] == 1.0
        assert row["closed"] == 1.0
        assert row["equivalent"] == 1.0
        assert row["too_long"] == (len(doc["form"].split()) > 256)


@pytest.mark.parametrize("form", ["cogs", "varfree"])
def test_golds_of_other_documents_are_wrong(folder: Path, form: str) -> None:
    """Without a limit, none is too long."""
    docs = load.dataset(slog_form=form)["test"].to_list()
    for doc, other in itertools.pairwise(docs[::50]):
        (row,) = score.process_results(doc, [other["form"]])
        assert row["equivalent"] == 0
        assert row["too_long"] == 0


def test_the_authors_prompt(folder: Path) -> None:
    """The second prompt is the authors' input."""
    authors_prompt = list(load.PROMPTS)[1]
    doc = load.dataset(slog_split="test", slog_prompt=authors_prompt)["test"][0]
    assert doc["input"] == f"### Input: {doc['sentence']} ### Output:\n"


def test_demonstrations_cover_the_constructions(folder: Path) -> None:
    """The first twenty have one of each construction and all roles; another seed has others."""

    def demonstrations_of(seed: int) -> Any:
        dataset = load.dataset(slog_prompt="labelled", slog_seed=seed)
        return dataset["train"].select(range(20))

    shown = demonstrations_of(seed=0)
    types = Counter(shown["type"])
    assert types == {**dict.fromkeys(demonstrations.COVER, 1), "in_distribution": 12}
    roles: set[str] = set()
    for form in shown["form"]:
        roles.update(role.strip() for role in re.findall(r"[a-z. ]+(?= =)", form))
    assert {"agent", "theme", "recipient", "ccomp", "xcomp", "nmod", "nmod . beside"} <= roles
    assert shown[0]["input"] == f"Sentence: {shown[0]['sentence']}\nLogical form:"
    assert not set(shown["id"]) & set(demonstrations_of(seed=1)["id"])


def test_a_recipe_trains_on_no_sentence_of_gen(folder: Path) -> None:
    """The material is the whole training set, and every eighth example of dev."""
    material = prepare("lm_eval_ext.benchmarks.slog.training", {}, seed=0)
    assert len(material.train) == 32_755
    assert len(material.dev) == 506
    sentences = {prompt for prompt, _ in material.train}
    assert not sentences & set(load.dataset()["test"]["input"])


def test_cogs_notation_has_no_demonstrations() -> None:
    """The error names the option to leave out."""
    with pytest.raises(OptionError, match="leave out slog_seed"):
        load.dataset(slog_form="cogs", slog_seed=1)


def test_a_wrong_password_is_one_line(folder: Path) -> None:
    """The error says that the archive cannot be read."""
    with pytest.raises(DataError, match="cannot be read") as raised:
        load.read(folder / "generalization_sets.zip", "varfree", b"slog")
    assert "\n" not in str(raised.value)


def test_an_archive_that_is_cut_off_is_one_line(folder: Path, tmp_path: Path) -> None:
    """The error says that the archive cannot be read."""
    cut = tmp_path / "cut.zip"
    cut.write_bytes((folder / "generalization_sets.zip").read_bytes()[:-100])
    with pytest.raises(DataError, match="cannot be read") as raised:
        load.read(cut, "varfree", load.PASSWORD)
    assert "\n" not in str(raised.value)


def test_an_absent_file_is_one_line(tmp_path: Path) -> None:
    """The error says that it cannot be read."""
    with pytest.raises(DataError, match="cannot be read") as raised:
        load.read(tmp_path / "none.tsv", "varfree", b"")
    assert "\n" not in str(raised.value)


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    """The error has its number."""
    file = tmp_path / "test.tsv"
    file.write_text("A dog ran .\trun ( agent = dog )\tin_distribution\nA dog ran .\n")
    with pytest.raises(DataError, match="line 2 is not a sentence") as raised:
        load.read(file, "varfree", b"")
    assert "\n" not in str(raised.value)


def test_the_mini_asks_after_twelve_demonstrations() -> None:
    """It has no thirteenth, and says so."""
    task = load_task("slog_mini")
    task.build_all_requests(limit=1, rank=0, world_size=1)
    prompt = task.instances[0].args[0]
    assert prompt.count("Sentence: ") == 13
    assert prompt.endswith("Logical form:")
    task.set_config("num_fewshot", 13)
    with pytest.raises(OptionError, match="slog_mini has 12 demonstrations, not 13"):
        task.build_all_requests(limit=1, rank=0, world_size=1)
