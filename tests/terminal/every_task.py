"""Made-up results of every task: its own metrics, without its data and without a model."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from lm_eval.tasks._yaml_loader import load_yaml
from support.results_files import DATE

from lm_eval_ext._autoload import tasks_folder
from lm_eval_ext.benchmarks.cogs import overestimation
from lm_eval_ext.benchmarks.cogs import score as cogs
from lm_eval_ext.benchmarks.conceptual import score as conceptual
from lm_eval_ext.benchmarks.diner import score as diner
from lm_eval_ext.benchmarks.diner.records import CATEGORIES
from lm_eval_ext.benchmarks.lieder import score as lieder
from lm_eval_ext.benchmarks.magnifico import score as magnifico
from lm_eval_ext.cards import card_of
from lm_eval_ext.harness.names import HIGH, LOW, STDERR
from lm_eval_ext.harness.noting import note
from lm_eval_ext.stats import ClusteredValue, mean_estimate

CONCEPTS = ("Lexical Entailment;Factivity", "Coordination Scope", "Symmetry&Collectivity")
SIZE = 24
CLUSTERS = 8


def metadata(task: str) -> Mapping[str, Any]:
    (file,) = Path(tasks_folder()).rglob(f"{task}.yaml")
    found: Mapping[str, Any] = load_yaml(file, resolve_func=False)["metadata"]
    return found


def metric_list(task: str) -> list[dict[str, Any]]:
    card, options = card_of(task), metadata(task)
    assert card
    if card.name == "lieder":
        return lieder.metric_list(**options)
    if card.name == "cogs":
        asked = overestimation if "overestimation" in task else cogs
        return asked.metric_list(**options)
    if card.name == "conceptual":
        control = task == "conceptual_glue"
        return conceptual.metric_list(conceptual.Layout(CONCEPTS, ("options",), control=control))
    if card.name == "diner":
        components = task.endswith("_components")
        return diner.component_metrics() if components else diner.name_metrics(CATEGORIES)
    forms = options.get("magnifico_forms", "plausible,foreign,adversarial").split(",")
    columns = {
        "form": ["base", *forms],
        "category": ["own", "phrase"] if "own" in task else ["basic", "subquery"],
        "interpretation": ["tall_and_very_old_buildings", "young"],
    }
    return magnifico.Scopes(columns).metric_list()


def documents(task: str) -> list[dict[str, Any]]:
    card = card_of(task)
    assert card
    docs = []
    for number in range(SIZE):
        cluster = f"cluster {number % CLUSTERS}"
        doc = {"id": f"{task}-{number}", "item": cluster, "type": cluster, "concept": cluster}
        doc |= {"answer": cluster, "db_id": cluster, "template": str(number // 2)}
        doc |= {"interpretation": f"meaning {number % CLUSTERS}", "family": "all"}
        docs.append(doc | {"form": "base" if number // CLUSTERS == 0 else "plausible"})
    return docs


def write(folder: Path, model: str, tasks: Sequence[str], skill: float) -> None:
    """Writes a model's results on tasks, with samples of each task's headline.

    Means are those of the samples. Of other metrics each has a value and an interval, except that
    structural types and the original databases have none.
    """
    folder.mkdir(parents=True)
    (folder / "model.yaml").write_text(yaml.safe_dump({"display_name": model}))
    content: dict[str, Any] = {
        "results": {}, "configs": {}, "versions": {}, "n-shot": {}, "higher_is_better": {},
        "n-samples": {}, "config": {"model": "hf", "model_args": {"pretrained": model}},
        "lm_eval_version": "0.4.13", "model_name": f"/scratch/models/{model}",
    }  # fmt: skip
    for task in tasks:
        _add(content, folder, task, random.Random(f"{model} {task}"), skill)
    (folder / f"results_{DATE}.json").write_text(json.dumps(content))


def _add(
    content: dict[str, Any], folder: Path, task: str, drawn: random.Random, skill: float
) -> None:
    card, entries = card_of(task), metric_list(task)
    assert card
    names = [one["metric"] for one in entries]
    own = [one for one in names if not one.endswith((STDERR, LOW, HIGH))]
    headline = card.headline_of(own)
    docs = documents(task)
    scores = [
        ClusteredValue(float(drawn.random() < skill), doc[card.cluster.column]) for doc in docs
    ]
    values: dict[str, Any] = {"alias": task}
    noted: dict[str, Any] = {}
    for one in entries:
        if one["metric"] not in own:
            continue
        key, (low, high) = f"{one['metric']},none", one.get("range") or (0.0, 1.0)
        top = 100.0 if high == 100.0 else 1.0
        value = top * (sum(scores) / SIZE if one["metric"] == headline else drawn.random())
        values |= {key: value, f"{one['metric']}{STDERR},none": 0.0}
        if one["metric"].startswith(("original/", "exact_match/structural")):
            noted[key] = {"documents": SIZE, "clusters": 3}
        else:
            bounds = {"low": max(value - top / 8, low or 0), "high": min(value + top / 8, top)}
            noted[key] = {"documents": SIZE, "clusters": CLUSTERS, "method": "wilson", **bounds}
    mean = note(mean_estimate(scores), (0.0, 1.0))
    if "relative_performance" not in headline:
        noted[f"{headline},none"] = mean
    size = card.tasks[task].documents or SIZE
    content["results"][task] = values
    content["configs"][task] = {
        "task": task,
        "metric_list": entries,
        "metadata": {"signature": {"task": task, "data": "made"}, "intervals": noted},
    }
    content["versions"][task] = "1.0"
    content["n-shot"][task] = 0
    content["higher_is_better"][task] = {one["metric"]: one["higher_is_better"] for one in entries}
    content["n-samples"][task] = {"original": size, "effective": size}
    with (folder / f"samples_{task}_{DATE}.jsonl").open("w") as out:
        for doc, score in zip(docs, scores, strict=True):
            logged = {headline: score, "true_positives": score, "predicted": 1.0, "gold": 1.0}
            row = {
                "doc_id": 0, "doc": doc, "target": "x", "arguments": {"gen_args_0": {"arg_0": "p"}},
                "resps": [["y"]], "filtered_resps": ["y"], "filter": "none",
                "metrics": list(logged), "doc_hash": doc["id"], "prompt_hash": "p",
                "target_hash": "t", **logged,
            }  # fmt: skip
            out.write(json.dumps(row) + "\n")
