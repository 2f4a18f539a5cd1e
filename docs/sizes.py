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


def tokens(text: str) -> int:
    """By the rule above."""
    return len(TOKEN.findall(text))


def counted(name: str) -> dict[str, Any]:
    """Of one task: mean tokens per request, those of the right answers, and the most allowed.

    Raises:
        LmEvalExtError: Its data are not available.
    """
    from lm_eval_ext.api.scoring import load_task

    task = load_task(name, {})
    task.build_all_requests(limit=SAMPLE, rank=0, world_size=1)
    asked, answers, most = [], [], 0
    for request in task.instances:
        prompt, rest = request.arguments[:2]
        generates = isinstance(rest, dict)  # LIEDER: a continuation, which is read as well
        asked.append(tokens(prompt if generates else prompt + rest))
        most = int(rest["max_gen_toks"]) if generates else 0
    if most:
        docs = {request.doc_id: request.doc for request in task.instances}
        answers = [tokens(str(task.doc_to_target(doc))) for doc in docs.values()]
    return {
        "version": str(task.VERSION),
        "prompt": round(fmean(asked)),
        "answer": round(fmean(answers or [0])),
        "most": most,
    }


def main() -> None:
    """Counts, or says whose counts have changed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 if stale")
    check = parser.parse_args().check
    os.environ["TQDM_DISABLE"] = "1"
    logging.disable(logging.WARNING)
    before = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    after = {}
    for name in TASKS:
        try:
            after[name] = counted(name)
        except LmEvalExtError as error:
            sys.stderr.write(f"{name}: not counted: {error}\n")
            after[name] = before.get(name)
    if check and after != before:
        stale = [name for name in TASKS if after.get(name) != before.get(name)]
        sys.exit(f"out of date: {', '.join(stale)} in docs/{FILE.name}; run: python docs/sizes.py")
    if not check:
        with atomic_text(FILE) as file:
            file.write(json.dumps(after, indent=1) + "\n")


if __name__ == "__main__":
    main()
