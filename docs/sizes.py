"""Counts what the tasks' prompts and right answers hold, for the tables of docs/index.md.

``python docs/sizes.py`` counts those of the tasks below whose data are at hand, keeps the figures
of the others, and writes ``docs/sizes.json``; ``docs/generate.py`` makes tables of it. With
``--check`` it changes nothing and exits with status 1 if a count has changed.

Tokens are counted by a rule that needs no tokenizer and stays the same: six letters, three digits,
one Chinese character or one other mark are a token. ``SAMPLE`` documents of each task are counted,
spread over all as ``--limit`` takes them.
"""

import argparse
import json
import logging
import os
import re
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from lm_eval_ext.atomic import atomic_text
from lm_eval_ext.errors import LmEvalExtError

FILE = Path(__file__).with_name("sizes.json")
SAMPLE = 96
TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W\d_\u3400-\u9fff]{1,6}|\d{1,3}|[^\w\s]|_|\n+")

TASKS = (
    "lieder_mini", "lieder_base", "lieder_diff", "lieder_two", "lieder_fresh_base",
    "magnifico_mini", "magnifico_direct", "magnifico_desc", "magnifico_fewshot",
    "magnifico_dialogue", "magnifico_phrase_desc", "magnifico_multi_desc",
    "cogs_mini_gen", "cogs_unmodified_gen_small", "cogs_cvcv_short_gen_small",
    "cogs_cvcv_short_gen", "cogs_icl_cvcv_short_gen", "cogs_mini_icl_gen",
    "conceptual_mini", "conceptual_glue", "conceptual_hotpotqa",
    "diner_mini_name", "diner_mini_components", "diner_mini_icl", "diner_name_tmcd", "diner_icl",
)  # fmt: skip
"""What index.md recommends; others that differ in lexicon or form are like one of these."""


def token_count(text: str) -> int:
    """Return the number of tokens of a text, by the rule above."""
    return len(TOKEN.findall(text))


def counts_of(name: str) -> dict[str, Any]:
    """Return a task's version, mean tokens of prompts and of right answers, and the most allowed.

    Raises:
        LmEvalExtError: The data are not available.
    """
    from lm_eval_ext.api.scoring import load_task

    task = load_task(name, {})
    task.build_all_requests(limit=SAMPLE, rank=0, world_size=1)
    prompt_counts = []
    most = 0
    for request in task.instances:
        prompt, settings_or_continuation = request.arguments[:2]
        if isinstance(settings_or_continuation, dict):
            most = int(settings_or_continuation["max_gen_toks"])
        else:  # a continuation, which is read as well
            prompt += settings_or_continuation
        prompt_counts.append(token_count(prompt))
    answer_counts = [0]
    if most:
        documents = {request.doc_id: request.doc for request in task.instances}
        targets = [str(task.doc_to_target(document)) for document in documents.values()]
        answer_counts = [token_count(target) for target in targets]
    return {
        "version": str(task.VERSION),
        "prompt": round(fmean(prompt_counts)),
        "answer": round(fmean(answer_counts)),
        "most": most,
    }


def main() -> None:
    """Count, or say whose counts have changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if stale")
    only_checks = parser.parse_args().check
    os.environ["TQDM_DISABLE"] = "1"
    logging.disable(logging.WARNING)
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    after = {}
    for name in TASKS:
        try:
            after[name] = counts_of(name)
        except LmEvalExtError as error:
            sys.stderr.write(f"{name}: not counted: {error}\n")
            after[name] = before.get(name)
    if only_checks and after != before:
        stale = [name for name in TASKS if after.get(name) != before.get(name)]
        sys.exit(f"out of date: {', '.join(stale)} in docs/{FILE.name}; run: python docs/sizes.py")
    if not only_checks:
        with atomic_text(FILE) as file:
            file.write(json.dumps(after, indent=1) + "\n")


if __name__ == "__main__":
    main()
