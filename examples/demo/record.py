"""Makes the recorded responses of this folder from results of ``lm-eval-ext run``.

Usage: python examples/demo/record.py RESULTS_FOLDER OUTPUT_FOLDER

Each task's logged samples become OUTPUT_FOLDER/TASK.jsonl, with a line per request: which document
it is (see FIELDS), the request's number in the document, and the response. ``--model recorded``
with ``match: doc`` reads such files (docs/chat.md#recorded-responses). Prompts are left out: the
tasks make them again.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIELDS = ("id", "item", "family", "experiment")
"""The fields of a document that tell it from all others: ``id``, or LIEDER's other three."""


def rows(sample: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each request of a logged sample."""
    document = sample["doc"]
    names = FIELDS[:1] if "id" in document else FIELDS[1:]
    part = {name: document[name] for name in names}
    for index, responses in enumerate(sample["resps"]):
        response = responses[0]
        if isinstance(response, list):
            log_probability, is_greedy = response
            response = [round(float(log_probability), 4), str(is_greedy) == "True"]
        row: dict[str, Any] = {"doc": part}
        if index:
            row["idx"] = index
        yield {**row, "response": response}


def record(results: Path, output: Path) -> None:
    """Write the responses of every task whose samples are in a folder."""
    output.mkdir(parents=True, exist_ok=True)
    for file in sorted(results.rglob("samples_*.jsonl")):
        task = file.stem.removeprefix("samples_").rpartition("_")[0]
        lines = []
        seen = set()
        for line in file.read_text(encoding="utf-8").splitlines():
            sample = json.loads(line)
            if sample["doc_id"] in seen:  # a document is logged once per filter
                continue
            seen.add(sample["doc_id"])
            lines += [json.dumps(row, ensure_ascii=False) for row in rows(sample)]
        (output / f"{task}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]))
