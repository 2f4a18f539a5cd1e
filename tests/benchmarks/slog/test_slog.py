"""SLOG: its files, what is asked, and how answers are scored, in both notations."""

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tasks import load_task

from lm_eval_ext.benchmarks.slog import demonstrations, load, score
from lm_eval_ext.benchmarks.slog.answers import READERS
from lm_eval_ext.errors import DataError, OptionError
from lm_eval_ext.training.recipe import prepare

COGS = "* bed ( x _ 6 ) ; see . agent ( x _ 1 , Mia ) AND see . theme ( x _ 1 , x _ 3 ) AND dog ( x _ 3 ) AND dog . nmod . on ( x _ 3 , x _ 6 )"  # noqa: E501
VARFREE = "see ( agent = Mia , theme = dog ( nmod . on = * bed ) )"


@pytest.fixture
def folder(real_data: Path) -> Path:
    found = real_data / "slog"
    if not found.is_dir():
        pytest.skip("the authors' files (slog) are not available here")
    return found


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
        (("give ( agent = * girl ( nmod = " * 3_000).strip(),) * 2,  # in linear time
    ],
)
def test_the_form_in_an_answer(answer: str, form: str) -> None:
    notation = "cogs" if form == COGS else "varfree"
    assert READERS[notation].read(answer) == form


Change = Callable[[str, random.Random], str]


def reordered(form: str, rng: random.Random) -> str:
    """The arguments of every word in another order, innermost brackets first."""
    done: list[str] = []

    def fold(found: re.Match[str]) -> str:
        arguments = found[1].split(" , ")
        rng.shuffle(arguments)
        done.append(f"( {' , '.join(arguments)} )")
        return f"#{len(done) - 1}#"

    while "(" in form:
        form = re.sub(r"\( ([^()]*) \)", fold, form)
    while "#" in form:
        form = re.sub("#([0-9]+)#", lambda found: done[int(found[1])], form)
    return form


def other_role(form: str, rng: random.Random) -> str:
    old, new = rng.sample(("agent", "theme", "recipient"), 2)
    return re.sub(rf"\b{old}\b", new, form, count=1)


def moved_bracket(form: str, rng: random.Random) -> str:
    tokens = form.split()
    del tokens[rng.choice([place for place, one in enumerate(tokens) if one == ")"])]
    tokens.insert(rng.randrange(1, len(tokens)), ")")
    return " ".join(tokens)


@pytest.mark.parametrize(
    ("change", "right"), [(reordered, True), (other_role, False), (moved_bracket, False)]
)
def test_rates_on_gold_forms(folder: Path, change: Change, right: bool) -> None:
    """Every changed gold of 500 is judged right by `equivalent`, or every one wrong.

    Those in COGS's notation are in tests/test_logical_forms.py.
    """
    rng = random.Random(0)
    golds = [one.form for one in load.read(folder / "generalization_sets.zip", "varfree")[::34]]
    changed = [(new, gold) for gold in golds if (new := change(gold, rng)) != gold]
    assert len(changed) > 200
    for new, gold in changed:
        found = score.score(new, gold, "varfree")
        assert (found["exact_match"], found["equivalent"]) == (0, right), (new, gold)


@pytest.mark.parametrize("form", ["cogs", "varfree"])
def test_golds_of_gen_are_right(folder: Path, form: str) -> None:
    docs = load.dataset(slog_form=form)["test"].to_list()
    assert set(Counter(doc["type"] for doc in docs).values()) == {1000}
    for doc in docs[::20]:
        (row,) = score.process_results(doc, [doc["form"]], 256)
        assert row["exact_match"] == row["closed"] == row["equivalent"] == 1.0
        assert row["too_long"] == (len(doc["form"].split()) > 256)
    for doc, other in itertools.pairwise(docs[::50]):
        (row,) = score.process_results(doc, [other["form"]])
        assert row["equivalent"] == row["too_long"] == 0, "without a limit, none is too long"
    if form == "varfree":  # the authors' input
        asked = load.dataset(slog_split="test", slog_prompt=[*load.PROMPTS][1])["test"][0]
        assert asked["input"] == f"### Input: {asked['sentence']} ### Output:\n"


def test_demonstrations_cover_the_constructions(folder: Path) -> None:
    shown, again = (
        load.dataset(slog_prompt="labelled", slog_seed=seed)["train"].select(range(20))
        for seed in (0, 1)
    )
    types = Counter(shown["type"])
    assert types == {**dict.fromkeys(demonstrations.COVER, 1), "in_distribution": 12}
    roles = {role.strip() for form in shown["form"] for role in re.findall(r"[a-z. ]+(?= =)", form)}
    assert {"agent", "theme", "recipient", "ccomp", "xcomp", "nmod", "nmod . beside"} <= roles
    assert shown[0]["input"] == f"Sentence: {shown[0]['sentence']}\nLogical form:"
    assert not set(shown["id"]) & set(again["id"])


def test_what_a_recipe_trains_on(folder: Path) -> None:
    """All of train, and of dev every eighth example; Gen has no sentence of it."""
    material = prepare("lm_eval_ext.benchmarks.slog.training", {}, seed=0)
    assert (len(material.train), len(material.dev)) == (32_755, 506)
    sentences = {prompt for prompt, _ in material.train}
    assert not sentences & set(load.dataset()["test"]["input"])


def test_cogs_notation_has_no_demonstrations() -> None:
    with pytest.raises(OptionError, match="leave out slog_seed"):
        load.dataset(slog_form="cogs", slog_seed=1)


def test_broken_files_are_one_line(folder: Path, tmp_path: Path) -> None:
    whole = folder / "generalization_sets.zip"
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole.read_bytes()[:-100])
    lines = tmp_path / "test.tsv"
    lines.write_text("A dog ran .\trun ( agent = dog )\tin_distribution\nA dog ran .\n")
    for path, password, message in (
        (whole, b"slog", "cannot be read"),
        (cut, load.PASSWORD, "cannot be read"),
        (tmp_path / "none.tsv", b"", "cannot be read"),
        (lines, b"", "line 2 is not a sentence"),
    ):
        with pytest.raises(DataError, match=message) as raised:
            load.read(path, "varfree", password)
        assert "\n" not in str(raised.value)


def test_the_mini_asks_after_twelve_demonstrations() -> None:
    task = load_task("slog_mini")
    task.build_all_requests(limit=1, rank=0, world_size=1)
    prompt = task.instances[0].args[0]
    assert prompt.count("Sentence: ") == 13
    assert prompt.endswith("Logical form:")
    task.set_config("num_fewshot", 13)
    with pytest.raises(OptionError, match="slog_mini has 12 demonstrations, not 13"):
        task.build_all_requests(limit=1, rank=0, world_size=1)
