"""A folder with the split that a training asks for, built where it is not there yet."""

from pathlib import Path

from lm_eval_ext.benchmarks.diner.build.dataset import Options, build
from lm_eval_ext.benchmarks.diner.files import REPORT
from lm_eval_ext.benchmarks.diner.load import TMCD, built_with
from lm_eval_ext.data import require
from lm_eval_ext.errors import OptionError


def built(folder: Path, corpus: str | None, divergence: float) -> None:
    """Builds a split, with the published glossary, or looks at the one that is there.

    Raises:
        OptionError: There is none and no corpus to build it from, or it has another divergence.
        DataError: The corpus or the glossary cannot be used.
    """
    if not (folder / REPORT).is_file():
        if corpus is None:
            raise OptionError(
                f"data.dir: {folder} holds no split; name the corpus with data.recipes, and it is "
                "built"
            )
        glossary = require("diner", "glossary").path
        build(Path(corpus).expanduser(), folder, glossary, Options(divergence=divergence))
    found = built_with(str(folder), TMCD).get("divergence")
    if found != f"{divergence:g}":
        raise OptionError(
            f"data.divergence is {divergence:g}, and the split in {folder} was built for {found}; "
            "name another folder"
        )
