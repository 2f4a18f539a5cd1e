"""Made-up results of every task: its own metrics, without its data and without a model."""

import json
import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from support.results_files import DATE

from lm_eval_ext.benchmarks.conceptual import score as conceptual
from lm_eval_ext.benchmarks.diner.records import CATEGORIES
from lm_eval_ext.benchmarks.lieder import score as lieder
from lm_eval_ext.benchmarks.magnifico import score as magnifico
from lm_eval_ext.cards import card_of
from lm_eval_ext.harness.metrics import Document, Metrics, Row, entry
from lm_eval_ext.runs.tasks import own_manager

SIZE = 24
CLUSTERS = 8


manager = cache(own_manager)


def metadata(task: str) -> Mapping[str, Any]:
    return dict(config(task)["metadata"])


def config(task: str) -> dict[str, Any]:
    found: dict[str, Any] = manager().task_index[task].cfg
    return found


def forms_of(task: str) -> list[str]:
    found: str = metadata(task).get("magnifico_forms", "plausible,foreign,adversarial")
    return found.split(",")


def metric_list(task: str) -> list[str]:
    card = card_of(task)
    assert card
    if card.name == "magnifico":
        return magnifico.metric_list(["base", *forms_of(task)], magnifico.DATABASES)
    if card.name == "conceptual":
        control = task == "conceptual_glue"
        return [one for one in card.metrics if control or one not in conceptual.OF_CONTROL]
    own: list[str] = config(task).get("metric_list", list(card.metrics))
    return own


def documents(task: str) -> list[dict[str, Any]]:
    card = card_of(task)
    assert card
    docs = []
    for number in range(SIZE):
        cluster = f"cluster {number % CLUSTERS}"
        doc = {"id": f"{task}-{number}", "item": cluster, "type": cluster, "concept": cluster}
        doc |= {"answer": cluster, "db_id": cluster, "template": str(number // 2)}
        doc |= {"interpretation": f"meaning {number % CLUSTERS}"}
        doc |= {"family": "affirmative_negation" if number % 2 else "know_doubt"}
        doc |= {"category": CATEGORIES[number % len(CATEGORIES)]}
        forms = ["base", *forms_of(task)]
        docs.append(doc | {"form": forms[number // CLUSTERS % len(forms)]})
    return docs


def rows(task: str, doc: Mapping[str, Any], drawn: random.Random, skill: float) -> list[Row]:
    """Scores of a document as its benchmark gives them."""
    card = card_of(task)
    assert card

    def right() -> float:
        return float(drawn.random() < skill)

    if card.name == "lieder":
        experiment = metadata(task).get("lieder_experiment", "base")
        verdicts: list[Row] = [
            {
                "metric": metric, "comparison": one.name, "requirement": one.requirement,
                "family": doc["family"], "correct": right(),
            }
            for metric in lieder.metrics_of(experiment)
            for one in lieder.comparisons_of(experiment)
        ]  # fmt: skip
        return [*verdicts, {"undefined": 0.0}]
    if card.name in ("discourse_entities", "slog"):
        asked = [card.question_of(name) for name in metric_list(task)]
        return [
            {
                **{facet: values[0] for facet, values in one.filter.items()},
                **{value: right() for value in one.measure.value},
            }
            for one in asked
        ]
    if card.name == "cogs":
        kind = "structural" if doc["type"] in ("cluster 0", "cluster 1") else "lexical"
        both = ("without", "with") if "overestimation" in task else ("without",)
        return [
            {
                "type": doc["type"], "kind": kind, "substitution": one,
                "exact_match": right(), "equivalent": 1.0,
            }
            for one in both
        ]  # fmt: skip
    if card.name == "conceptual":
        return [
            {
                "template": "options", "demonstrations": one, "concept": doc["concept"],
                "rouge_l": right(), "accuracy": right(),
            }
            for one in ("random", "concept", "same_labels")
        ]  # fmt: skip
    if card.name == "diner":
        hit = right()
        counts = {"hits": hit, "predicted": 1.0, "gold": 1.0, "category": doc["category"]}
        scores = {"f1": hit, "exact_match": hit, "unparsed": 0.0, "no_answer": 0.0}
        kinds: list[Row] = [{"kind": kind, **counts} for kind in ("food", "action", "flavour")]
        return [{"kind": "all", **counts, **scores}, *kinds]
    status = "correct" if right() else "wrong"
    return magnifico.rows(doc, dict.fromkeys(magnifico.DATABASES, status), query_found=True)  # type: ignore[arg-type]


def write(folder: Path, model: str, tasks: Sequence[str], skill: float) -> None:
    """Writes a model's results on tasks, with samples."""
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
    card = card_of(task)
    assert card
    metrics = Metrics({name: card.question_of(name) for name in metric_list(task)})
    scored = [
        Document(doc["id"], card.cluster.names(doc, own=False), rows(task, doc, drawn, skill))
        for doc in documents(task)
    ]
    values = {f"{name},none": found(scored) for name, found in metrics.aggregation().items()}
    entries = [entry(*named) for named in metrics.questions.items()]
    size = card.tasks[task].documents or SIZE
    content["results"][task] = {"alias": task, **values}
    content["configs"][task] = {
        "task": task,
        "metric_list": entries,
        "metadata": {
            "signature": {"task": task, "data": "made"},
            "intervals": metrics.noted(["none"]),
            "benchmark": card.name,
        },
    }
    content["versions"][task] = "1.0"
    content["n-shot"][task] = 0
    content["higher_is_better"][task] = {one["metric"]: one["higher_is_better"] for one in entries}
    content["n-samples"][task] = {"original": size, "effective": size}
    with (folder / f"samples_{task}_{DATE}.jsonl").open("w") as out:
        for doc, one in zip(documents(task), scored, strict=True):
            row = {
                "doc_id": 0, "doc": doc, "target": "x", "arguments": {"gen_args_0": {"arg_0": "p"}},
                "resps": [["y"]], "filtered_resps": ["y"], "filter": "none",
                "metrics": ["rows"], "doc_hash": doc["id"], "prompt_hash": "p",
                "target_hash": "t", "rows": one.rows,
            }  # fmt: skip
            out.write(json.dumps(row) + "\n")
