"""Experiments: what a file expands to, resuming, and the arithmetic of the table."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats
from support.results_files import rows, write_run
from typer.testing import CliRunner

from lm_eval_ext.cli.app import app
from lm_eval_ext.errors import OptionError
from lm_eval_ext.experiments import report
from lm_eval_ext.experiments.plan import Plan, read_plan, shipped
from lm_eval_ext.experiments.table import Table, published, table_of
from lm_eval_ext.runs.experiment import Steps, check_tasks, experiment, missing
from lm_eval_ext.runs.run import FailedError, Work
from lm_eval_ext.stats import ClusteredValue, interval, mean_estimate
from lm_eval_ext.stats.intervals import UNIT
from lm_eval_ext.training.records import Trained, finished

FILE: dict[str, Any] = {
    "title": "Does it help?",
    "paper": "None.",
    "departures": [],
    "recipe": "cogs_tiny",
    "seeds": "0-2",
    "set": {"training.steps": 5},
    "factors": {
        "words": {"own": {}, "new": {"data.lexicon": "cvcv_short"}},
        "size": {
            "none": {"model_file.pretraining_tokens": 0},
            "1K": {"model_file.pretraining_tokens": 1000},
        },
    },
    "tasks": "made,other",
    "scores": {"Made": "made exact_match", "Other": "other exact_match"},
    "gaps": {"Other minus made": ["Other", "Made"]},
    "trend": {"factor": "size", "x": "pretraining_tokens", "title": "tokens"},
}


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Plan]:
    """Reads FILE with changes, each at a path such as ``trend.factor``."""

    def read(changes: dict[str, Any] | None = None, **options: Any) -> Plan:
        content = json.loads(json.dumps(FILE))
        for path, value in (changes or {}).items():
            *before, last = path.split("/")
            place = content
            for part in before:
                place = place[part]
            place[last] = value
        file = tmp_path / "made.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False))
        return read_plan(str(file), **options)

    return read


def test_every_combination_of_levels_is_a_condition(read: Any) -> None:
    plan = read({"factors/size/1K/recipe": "cogs_tiny_causal"}, settings={"training.steps": 7})
    assert [one.name for one in plan.conditions] == ["own, none", "own, 1K", "new, none", "new, 1K"]
    assert [one.slug for one in plan.conditions] == ["own-none", "own-1K", "new-none", "new-1K"]
    assert [one.content.data["lexicon"] for one in plan.conditions[2:]] == ["cvcv_short"] * 2
    assert {one.content.training.steps for one in plan.conditions} == {7}
    assert [one.recipe for one in plan.conditions] == ["cogs_tiny", "cogs_tiny_causal"] * 2
    assert [one.line(plan.about.trend) for one in plan.conditions] == ["own", "own", "new", "new"]
    cells = plan.cells()
    assert len(cells) == 12
    assert [cell.seed for cell in cells] == [0] * 4 + [1] * 4 + [2] * 4
    assert [cell.name for cell in plan.cells("new-1K-*")] == [f"new-1K-seed-{n}" for n in range(3)]
    assert read({"set": {"training.steps": 3}}, seeds="4,7").seeds == (4, 7)


def test_names_in_braces_are_options_of_the_recipe(read: Any) -> None:
    plan = read({"scores/Made": "cogs_{lexicon}_gen x", "tasks": "cogs_{lexicon}",
                 "factors/words/own": {"data.lexicon": "tokens"}})  # fmt: skip
    assert [one.scores["Made"] for one in plan.conditions[1:3]] == [
        ("cogs_tokens_gen", "x"), ("cogs_cvcv_short_gen", "x"),
    ]  # fmt: skip
    assert plan.conditions[3].tasks == "cogs_cvcv_short"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sedes": "0"}, "unknown key; nearest is seeds"),
        ({"trend/factr": "size"}, "nearest is factor"),
        ({"trend/factor": "sizes"}, "no factor 'sizes'; there are words, size"),
        ({"gaps": {"x": ["Made", "Mode"]}}, "no score 'Mode'; there are Made, Other"),
        ({"gaps": {"Made": ["Made", "Other"]}}, "'Made' is a score already"),
        ({"published": {"p": {"Mad": "cogs_tokens_gen all"}}}, "no score 'Mad'"),
        ({"scores/Made": "made"}, "scores.Made"),
        ({"factors/words": {}}, "factors.words"),
        ({"factors/words/own": {"data.lexicn": "x", "training.stepz": 1}}, "nearest is steps"),
        ({"recipe": ""}, "no recipe; name one at the top"),
        ({"recipe": "cogs_tny"}, "nearest name is cogs_tiny"),
        ({"seeds": "a"}, "0-4 or 0,2,7"),
        ({"factors/words": {"a b": {}, "a-b": {}}}, "'a b, none' and 'a-b, none' would have"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(read: Any, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as error:
        read(changes)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("small_index")
def test_tasks_are_looked_at_before_anything_is_trained(read: Any) -> None:
    legal = {"tasks": "cogs_mini", "scores": {"Gen": "cogs_mini_gen exact_match/all"}, "gaps": {}}
    check_tasks(read(legal))
    with pytest.raises(OptionError, match="scores, Gen: cogs_mini_gen is not among the tasks"):
        check_tasks(read({**legal, "tasks": "cogs_mini_id"}))
    with pytest.raises(OptionError, match="cogs_mini_gem"):
        check_tasks(read({**legal, "tasks": "cogs_mini_gem"}))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- a")
    (tmp_path / "broken.yaml").write_text("a: [")
    for name, said in (
        ("cogs_smal", "nearest name is cogs_small"),
        (str(tmp_path / "list.yaml"), "must be a mapping"),
        (str(tmp_path / "broken.yaml"), "not YAML"),
    ):
        result = CliRunner().invoke(app, ["experiment", name, "-o", str(tmp_path / "out")])
        assert isinstance(result.exception, OptionError)
        assert said in str(result.exception)
    assert not (tmp_path / "out").exists()


class StandIns:
    """Stand in for ``train`` and ``run``, which do nothing twice."""

    def __init__(self, plan: Plan, rates: Callable[[str, int], float]) -> None:
        self.plan, self.rates = plan, rates
        self.trained: list[str] = []
        self.evaluated: list[str] = []
        self.rounds = 0
        self.broken = ""
        self.unlearned: set[str] = set()

    def train(self, recipe: str, out: Path, *, seeds: Any, settings: Any, shared: Any) -> Any:
        (seed,) = seeds
        folder = out / f"seed-{seed}"
        name = f"{out.name}-seed-{seed}"
        if name == self.broken:
            raise KeyboardInterrupt
        there = finished(folder)
        if there is None:
            self.trained.append(name)
            folder.mkdir(parents=True)
            score = 0.5 if name in self.unlearned else 1.0
            gates = [{"name": "all", "examples": 4, "score": score, "bar": 1.0, "wrong": []}]
            record = {"gates": gates, "key": {}, "recipe": {}, "curve": [], "seconds": 1}
            (folder / "training.json").write_text(json.dumps(record))
            (out / "models").mkdir(exist_ok=True)
            tokens = settings["model_file.pretraining_tokens"]
            (out / "models" / f"r-{seed}.yaml").write_text(
                yaml.safe_dump({"model": "hf", "pretraining_tokens": tokens})
            )
            there = finished(folder)
        assert there is not None
        return [Trained(folder, there.gates, there.record, out / "models" / f"r-{seed}.yaml", True)]

    def evaluate(self, work: Work) -> None:
        self.rounds += 1
        failed = {}
        for file in work.models:
            name = file.stem
            if (work.output / name).is_dir():
                continue
            if name in self.unlearned or (name == "new-none-seed-0" and self.rounds == 1):
                failed[name] = "no memory"
                continue
            self.evaluated.append(name)
            self.write(work.output, name)
        if failed:
            raise FailedError(failed, len(work.models))

    def write(self, output: Path, name: str) -> None:
        folder = output / name
        for place, task in enumerate(("made", "other")):
            right = round(10 * self.rates(name, place))
            write_run(folder, name, task, rows(10, right), date=f"2026-01-0{place + 1}T00")

    @property
    def steps(self) -> Steps:
        return Steps(self.train, self.evaluate, lambda line: None)


def rate(name: str, place: int) -> float:
    """A share of right answers that depends on condition, seed and task."""
    seed, more = int(name[-1]), "1K" in name
    return {0: 0.2, 1: 0.5}[place] + 0.1 * seed * (1 + place) + 0.1 * more


def test_an_interrupted_experiment_goes_on_where_it_ended(read: Any, tmp_path: Path) -> None:
    plan, out = read(), tmp_path / "out"
    doubles = StandIns(plan, rate)
    doubles.unlearned, doubles.broken = {"own-1K-seed-0"}, "own-1K-seed-1"
    assert {one["missing"] for one in missing(plan, out)} == {"training"}
    assert len(missing(plan, out)) == 12
    with pytest.raises(KeyboardInterrupt):
        experiment(plan, out, doubles.steps)
    left = {one["model"]: one["missing"] for one in missing(plan, out)}
    assert len(doubles.trained) == 5, "a seed, and one of the next"
    assert doubles.evaluated == ["own-none-seed-0", "new-1K-seed-0"]
    assert "own-1K-seed-0" not in left, "what did not learn lacks nothing"
    assert left.pop("new-none-seed-0") == "evaluation", "it failed"
    assert left.pop("own-none-seed-1") == "evaluation"
    assert set(left.values()) == {"training"}
    assert len(left) == 7

    doubles.broken = ""
    experiment(plan, out, doubles.steps)
    assert missing(plan, out) == []
    assert len(doubles.trained) == len(set(doubles.trained)) == 12
    assert len(doubles.evaluated) == len(set(doubles.evaluated)) == 11
    before = len(doubles.evaluated)
    experiment(plan, out, doubles.steps)
    assert (len(doubles.trained), len(doubles.evaluated)) == (12, before)
    again = "own-1K-seed-2"
    shutil.rmtree(out / "trained" / "own-1K" / "seed-2")
    experiment(plan, out, doubles.steps)
    assert doubles.trained[12:] == doubles.evaluated[before:] == [again], "another model now"
    kept = yaml.safe_load((out / "models" / "new-1K-seed-2.yaml").read_text())
    assert (kept["display_name"], kept["family"]) == ("new, 1K, seed 2", "new")


def test_an_evaluation_that_fails_does_not_stop_the_others(read: Any, tmp_path: Path) -> None:
    plan, out = read(), tmp_path / "out"
    doubles = StandIns(plan, rate)
    with pytest.raises(FailedError, match="1 of 12 models failed: new-none-seed-0: no memory"):
        experiment(plan, out, doubles.steps)
    assert len(doubles.evaluated) == 11


def test_a_failure_is_told_after_the_table_and_a_look_changes_nothing(
    read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval_ext.runs import run
    from lm_eval_ext.training import command

    plan, out = read(), tmp_path / "out"
    doubles = StandIns(plan, rate)
    monkeypatch.setattr(command, "train", doubles.train)
    monkeypatch.setattr(run, "run", lambda work, _reporter: doubles.evaluate(work))
    monkeypatch.setattr("lm_eval_ext.runs.experiment.check_tasks", lambda plan: None)
    call = ["experiment", str(tmp_path / "made.yaml"), "-o", str(out)]
    listed = CliRunner().invoke(app, [*call, "--list", "--seeds", "0"])
    lines = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [one["model"] for one in lines] == [cell.name for cell in plan.cells("*-seed-0")]
    assert not out.exists()
    doubles.rounds = -2  # the third is the one that fails
    for line in lines:
        result = CliRunner().invoke(app, line["command"][1:])
        assert "own, none" in result.stdout
        assert isinstance(result.exception, FailedError) == (line["model"] == "new-none-seed-0")
    assert doubles.trained == [one["model"] for one in lines]
    before = (out / report.RECORD).read_bytes()
    for option in ("--show", "--dry-run"):
        looked = CliRunner().invoke(app, [*call, option, "--seeds", "0-1"])
        assert looked.exit_code == 0
    assert "new-none-seed-0: evaluation\n" in looked.stdout
    assert looked.stdout.endswith("5 models to do\n")
    assert (out / report.RECORD).read_bytes() == before


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Path, Table]:
    """A whole experiment, in which a model did not learn that had the best of all scores."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "made.yaml").write_text(yaml.safe_dump(FILE, sort_keys=False))
    plan, out = read_plan(str(folder / "made.yaml")), folder / "out"
    doubles = StandIns(plan, rate)
    doubles.unlearned, doubles.rounds = {"new-1K-seed-1"}, 1
    experiment(plan, out, doubles.steps)
    write_run(out / "results" / "new-1K-seed-1", "x", "made", rows(10, 10))
    return plan, out, table_of(plan, out)


def test_means_and_spread_are_those_of_the_seeds_that_learned(done: Any) -> None:
    plan, _, table = done
    assert [row.name for row in table.rows] == [one.name for one in plan.conditions]
    for row in table.rows:
        slug = row.name.replace(", ", "-")
        seeds = [0, 2] if slug == "new-1K" else [0, 1, 2]
        assert (row.learned, row.seeds) == (len(seeds), 3)
        for place, heading in enumerate(("Made", "Other")):
            own = [rate(f"{slug}-seed-{seed}", place) for seed in seeds]
            value = row.values[heading]
            assert list(value.seeds) == seeds
            assert value.mean == pytest.approx(np.mean(own))
            assert value.sd == pytest.approx(np.std(own, ddof=1))
        gaps = [rate(f"{slug}-seed-{s}", 1) - rate(f"{slug}-seed-{s}", 0) for s in seeds]
        assert row.values["Other minus made"].mean == pytest.approx(np.mean(gaps))
        assert row.values["Other minus made"].low is None
    assert {row.name: dict(row.failed) for row in table.rows if row.failed} == {
        "new, 1K": {1: "all 50.0 % of 4 (at least 100 %)"}
    }


def test_the_interval_is_that_of_documents_averaged_over_seeds(done: Any) -> None:
    _, _, table = done
    row = table.rows[0]
    right = [round(10 * rate(f"own-none-seed-{seed}", 0)) for seed in range(3)]
    means = [np.mean([number < count for count in right]) for number in range(10)]
    values = (ClusteredValue(float(mean), str(n)) for n, mean in enumerate(means))
    found = interval(mean_estimate(values), UNIT)
    assert found is not None
    value = row.values["Made"]
    assert (value.low, value.high) == (found.low, found.high)
    assert found.low < value.mean < found.high


def test_correlations_are_scipys_over_all_models_of_a_line(done: Any) -> None:
    _, _, table = done
    assert {one.line for one in table.correlations} == {"own", "new"}
    for one in table.correlations:
        if one.heading != "Made":
            continue
        points = [
            (1000.0 * more, rate(f"{one.line}-{name}-seed-{seed}", 0))
            for more, name in enumerate(("none", "1K"))
            for seed in range(3)
            if (one.line, name, seed) != ("new", "1K", 1)
        ]
        x, y = np.array(points).T
        # The rank correlation is Pearson's of the ranks; its p-value that of Student's t.
        ranks = np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]
        assert one.models == len(points)
        assert one.spearman == pytest.approx(ranks)
        assert one.pearson == pytest.approx(np.corrcoef(x, y)[0, 1])
        t = abs(one.pearson) * math.sqrt((len(x) - 2) / (1 - one.pearson**2))
        assert one.pearson_p == pytest.approx(2 * stats.t.sf(t, len(x) - 2))


def test_the_papers_inverse_scaling_comes_out_of_its_table_3() -> None:
    """Section 5.2: accuracy falls with the amount of pretraining, and the gap grows."""
    about = read_plan("cogs_small").about
    small = [one for one in published(about) if one.name.startswith("T5-small")]
    assert len(small) == 8
    assert {one.x for one in small} >= {0.0, 1e6, 1e12}
    gen = [one.values["Gen, lexical"] for one in small]
    gap = [one.values["Test-Lex minus Gen, lexical"] for one in small]
    x = [one.x for one in small]
    assert gap[-1] == pytest.approx(0.476)
    assert stats.spearmanr(x, gen).statistic == pytest.approx(-0.310, abs=1e-3)
    assert stats.pearsonr(x, gap).statistic == pytest.approx(0.992, abs=1e-3)


def test_the_table_as_text_markdown_and_json(done: Any) -> None:
    _, _, table = done
    text, markdown = report.as_text(table, 200), report.as_markdown(table)
    assert "own, none" in text
    assert "0.300 ± 0.100 [" in text
    assert "new, 1K, seed 1: did not learn (all 50.0 % of 4 (at least 100 %))" in text
    assert "| new, 1K | 2 of 3 | 0.400 ± 0.141 " in markdown
    content = report.as_json(table)
    assert content["rows"][3]["values"]["Made"]["seeds"] == {"0": 0.3, "2": 0.5}
    assert content["correlations"][0]["line"] == "own"
    assert content["about"]["title"] == "Does it help?"


def test_every_experiment_that_ships_is_legal() -> None:
    for name in shipped():
        plan = read_plan(name)
        assert len(plan.about.paper) > 40
        assert plan.about.departures
        assert len(plan.seeds) >= 3
        published(plan.about)


def test_the_small_experiment_from_texts_to_the_table(tmp_path: Path) -> None:
    """Everything is real but the process of ``run``; of its steps there are hardly any."""
    from support.logged import evaluate as in_process

    from lm_eval_ext.training.command import train

    few = {"steps": 2, "batch_size": 4, "evaluate_every": 2, "warmup_steps": 0}
    before = {"training.spans.tokens": 1500, "data.sentences": 500}
    settings = {f"training.{key}": value for key, value in few.items()}
    settings |= {f"first.pretrained.set.training.{key}": value for key, value in few.items()}
    settings |= {f"first.pretrained.set.{key}": value for key, value in before.items()}
    plan = read_plan("cogs_small", seeds="4", settings={**settings, "gates": {}})
    only, done = "[wC]*-3M-tokens-seed-4", []

    def evaluate(work: Work) -> None:
        for file in work.models:
            done.append(file.stem)
            model = yaml.safe_load(file.read_text())
            in_process(
                work.output / file.stem, "hf", work.tasks.split(","), limit=2, device="cpu",
                model_args=model["model_args"], metadata=model["metadata"],
                gen_kwargs="max_gen_toks=2",
            )  # fmt: skip

    experiment(plan, tmp_path, Steps(train, evaluate, lambda line: None), only=only)
    assert done == ["words-3M-tokens-seed-4", "CVCV-short-3M-tokens-seed-4"]
    assert missing(plan, tmp_path, only=only) == []
    (first,) = (one for one in (tmp_path / "first").iterdir() if one.is_dir())
    starts = [
        finished(tmp_path / "trained" / name / "seed-4") for name in
        ("words-3M-tokens", "CVCV-short-3M-tokens")
    ]  # fmt: skip
    shared = finished(first)
    assert shared is not None
    for one in starts:
        assert one is not None
        assert one.record["key"]["first"]["pretrained"] == shared.record["key"]
    table = table_of(plan, tmp_path)
    rows = {row.name: row for row in table.rows}
    assert rows["words, 3M tokens"].x == rows["CVCV short, 3M tokens"].x == 1500
    assert rows["words, 3M tokens"].values.keys() == set(table.about.headings)
    assert rows["CVCV short, 300K tokens"].missing == {4: "training"}
    report.write(table, tmp_path)
    assert report.read(tmp_path / report.RECORD) == table
