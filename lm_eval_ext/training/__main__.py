"""A process that a launcher starts: ``python -m lm_eval_ext.training PLAN.json``."""

import json
import sys
from pathlib import Path

from lm_eval_ext.errors import one_line_errors
from lm_eval_ext.training.command import train_here
from lm_eval_ext.training.recipe import Recipe

if __name__ == "__main__":
    with one_line_errors():
        content, folder, seed, folders = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        train_here(Recipe.model_validate(content), Path(folder), seed, folders)
