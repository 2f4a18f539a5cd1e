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

from lm_eval_ext.benchmarks.slog import demonstrations, load, score, view
from lm_eval_ext.benchmarks.slog.answers import READERS
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.training.recipe import prepare

COGS = (
    "* bed ( x _ 6 ) ; see . agent ( x _ 1 , Mia ) AND see . theme ( x _ 1 , x _ 3 ) "
    "AND dog ( x _ 3 ) AND dog . nmod . on ( x _ 3 , x _ 6 )"
)
VARFREE = "see ( agent = Mia , theme = dog ( nmod . on = * bed ) )"


ENDLESS = ("give ( agent = * girl ( nmod = " * 3_000).strip()


@pytest.fixture
def folder(real_data: Path) -> Path:
    """Return the folder of the authors' files, or skip the test without it."""
    files = real_data / "slog"
    if not files.is_dir():
        pytest.skip("the authors' files (slog) are not available here")
    return files


def check_scores(gold: str, answer: str, expected: dict[str, int]) -> None:
    """Score an answer in the notation of the gold."""
    notation = "cogs" if gold == COGS else "varfree"
    assert score.score(answer, gold, notation) == expected


SAME = {"exact_match": 1, "closed": 1, "equivalent": 1}
EQUIVALENT = {"exact_match": 0, "closed": 0, "equivalent": 1}
CLOSED = {"exact_match": 0, "closed": 1, "equivalent": 0}
WRONG = {"exact_match": 0, "closed": 0, "equivalent": 0}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(VARFREE, SAME, id="the gold"),
        pytest.param(
            " see ( agent=Mia, theme = dog ( nmod.on = * bed ) )  ", SAME, id="other spaces"
        ),
        pytest.param(VARFREE.removesuffix(" ) )"), CLOSED, id="open brackets"),
        pytest.param(
            "see(agent = Mia , theme = dog(nmod . on = *bed))", EQUIVALENT, id="no spaces"
        ),
        pytest.param(
            "see ( theme = dog ( nmod . on = * bed ) , agent = Mia )", EQUIVALENT, id="other order"
        ),
        pytest.param(
            "see ( theme = Mia , agent = dog ( nmod . on = * bed ) )", WRONG, id="other roles"
        ),
        pytest.param(
            "see ( agent = Mia , theme = dog ) ( nmod . on = * bed )", WRONG, id="modifier outside"
        ),
        pytest.param(
            "see ( agent = Mia ( nmod . on = * bed ) , theme = dog )", WRONG, id="other modified"
        ),
        pytest.param(
            "see ( agent = Mia , theme = * dog ( nmod . on = bed ) )", WRONG, id="other definite"
        ),
        pytest.param(VARFREE + " )", WRONG, id="a bracket too many"),
        pytest.param("( " * 40_000, WRONG, id="brackets only"),
        pytest.param("", WRONG, id="empty"),
    ],
)
def test_an_answer_without_variables_is_compared(answer: str, expected: dict[str, int]) -> None:
    """The exact match knows spaces, the closed form brackets, and equivalence what forms mean."""
    check_scores(VARFREE, answer, expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(COGS, SAME, id="the gold"),
        pytest.param(COGS.replace("x _ 3", "x _ 17"), EQUIVALENT, id="other variable"),
        pytest.param(
            COGS.replace("dog ( x _ 3 ) AND ", "") + " AND dog ( x _ 3 )",
            EQUIVALENT,
            id="other order",
        ),
        pytest.param(COGS.replace("x _ 6 )", "x _ 3 )"), WRONG, id="variables that are one"),
        pytest.param(COGS.replace("agent", "theme"), WRONG, id="other role"),
        pytest.param(COGS.replace("; ", "AND "), WRONG, id="no definite noun first"),
        pytest.param("see . agent ( x _ 1 , Mia", WRONG, id="cut off"),
    ],
)
def test_an_answer_in_cogs_notation_is_compared(answer: str, expected: dict[str, int]) -> None:
    """Names of variables and order count for the exact match only."""
    check_scores(COGS, answer, expected)


def test_a_name_is_a_form() -> None:
    """A primitive has no brackets."""
    check_scores("Mia", "Mia", SAME)


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        pytest.param(
            f"### Input: Mia saw a dog . ### Output:\n{VARFREE}", VARFREE, id="the prompt again"
        ),
        pytest.param(f"```\n{VARFREE}\n```", VARFREE, id="fenced"),
        pytest.param(
            f"Here it is:\n\n```text\n{COGS}\n```\nGood luck!", COGS, id="fenced in prose"
        ),
        pytest.param(f"<think>see (\n\n{COGS}\n</think>\n`{VARFREE}`", VARFREE, id="thoughts"),
        pytest.param(
            f"{VARFREE}\n\nSentence: Who ran ?\nrun ( agent = ? )", VARFREE, id="a next example"
        ),
        pytest.param(f"Logical form: {VARFREE}", VARFREE, id="label"),
        pytest.param(
            f"{VARFREE} ### Input: Who ran ? ### Output: run ( agent = ? )",
            VARFREE,
            id="a next prompt",
        ),
        pytest.param("Mia", "Mia", id="name"),
        pytest.param(
            "I cannot do that (yet).\nSorry", "I cannot do that (yet).\nSorry", id="refusal"
        ),
        pytest.param("", "", id="empty"),
        pytest.param(ENDLESS, ENDLESS, id="endless, in linear time"),
    ],
)
def test_the_form_is_read_out_of_an_answer(answer: str, form: str) -> None:
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
    """Return a form in which the first argument of a role has another role."""
    old, new = rng.sample(("agent", "theme", "recipient"), 2)
    return re.sub(rf"\b{old}\b", new, form, count=1)


def moved_bracket(form: str, rng: random.Random) -> str:
    """Return a form in which a closing bracket stands elsewhere."""
    tokens = form.split()
    closing = [index for index, token in enumerate(tokens) if token == ")"]
    del tokens[rng.choice(closing)]
    tokens.insert(rng.randrange(1, len(tokens)), ")")
    return " ".join(tokens)


@pytest.mark.parametrize(
    ("change", "right"), [(reordered, True), (other_role, False), (moved_bracket, False)]
)
def test_all_changed_golds_have_the_same_verdict(folder: Path, change: Change, right: bool) -> None:
    """All of 500 are judged right by `equivalent`, or all wrong.

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
        assert row["exact_match"] == 1.0, doc
        assert row["closed"] == 1.0, doc
        assert row["equivalent"] == 1.0, doc
        assert row["too_long"] == (len(doc["form"].split()) > 256), doc


@pytest.mark.parametrize("form", ["cogs", "varfree"])
def test_golds_of_other_documents_are_wrong(folder: Path, form: str) -> None:
    """Without a limit, none is too long."""
    docs = load.dataset(slog_form=form)["test"].to_list()
    for doc, next_doc in itertools.pairwise(docs[::50]):
        (row,) = score.process_results(doc, [next_doc["form"]])
        assert row["equivalent"] == 0, doc
        assert row["too_long"] == 0, doc


def test_the_second_prompt_is_the_authors(folder: Path) -> None:
    """It has the marks of their input."""
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


def test_a_report_shows_the_sentence_and_what_it_tests() -> None:
    """The end of a prompt in context would be all that it shows otherwise."""
    docs = [dict(doc) for doc in load_task("slog_mini").eval_docs]
    views = view.documents(docs, [()] * len(docs))
    assert views[0].title.startswith(f"{docs[0]['sentence']} (")
    assert views[0].gold == docs[0]["form"]
    assert len({shown.title.rpartition(" (")[2] for shown in views}) > 1
    (answer,) = view.answers(docs[:1], [["a form"]])
    assert answer.answer == "a form"
