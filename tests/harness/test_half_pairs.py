"""Half a surrogate pair in a response, as models that generate bytes may write it."""

import json
from pathlib import Path

from support.logged import evaluate

from lm_eval_ext import load_results
from lm_eval_ext.runs.tasks import our_task_manager

TASK = "conceptual_mini"


def test_a_run_with_half_a_pair_completes(tmp_path: Path) -> None:
    """lm-eval's own evaluation writes results and samples; the half pair stands there escaped."""
    task = our_task_manager().load([TASK])["tasks"][TASK]
    rows = []
    for document in task.eval_docs:
        for index, response in enumerate(("half \ud83d", "whole \U0001f600")):
            rows.append({"doc": {"id": document["id"]}, "idx": index, "response": response})
    responses = tmp_path / "responses.jsonl"
    responses.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = {"path": str(responses), "match": "doc"}
    evaluate(tmp_path / "results", "recorded", [TASK], model_args=arguments, limit=2)
    samples = load_results(tmp_path / "results").samples(TASK)
    logged = {text for responses in samples["resps"] for texts in responses for text in texts}
    assert logged == {"half \\ud83d", "whole \U0001f600"}
