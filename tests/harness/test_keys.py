"""Keys of --metadata: what must be refused, what must pass, and that no list goes stale."""

import ast
import logging
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm_eval_ext.errors import OptionError
from lm_eval_ext.harness import keys
from lm_eval_ext.harness.preflight import check
from lm_eval_ext.runs.tasks import own_manager, select

ROOT = Path(__file__).parents[2]
PREFIXES = ("cogs_", "conceptual_", "diner_", "lieder_", "magnifico_")
LEGAL = [(prefix, key) for prefix in PREFIXES for key in keys.keys_of(prefix)]

MISSPELT = [
    ("magnifco_seed", "magnifico_seed"), ("magnifico_sed", "magnifico_seed"),
    ("Magnifico_Seed", "magnifico_seed"),
    ("magnifico-seed", "magnifico_seed"), ("magnificoseed", "magnifico_seed"),
    ("magnifico_database", "magnifico_databases"),
    ("cog_seed", "cogs_seed"), ("cgos_seed", "cogs_seed"), ("cogs_sead", "cogs_seed"),
    ("COGS_SHAPE", "cogs_shape"), ("cogs_gen_revison", "cogs_gen_revision"),
    ("concept_template", "conceptual_template"),
    ("conceptal_template", "conceptual_template"), ("conceptual_max_word", "conceptual_max_words"),
    ("leider_experiment", "lieder_experiment"),
    ("dinner_dir", "diner_dir"), ("diner_perdish", "diner_per_dish"),
    ("diner_component_file", "diner_components_file"), ("dine_wording", "diner_wording"),
]  # fmt: skip
OF_OTHERS = [
    "max_length", "max_seq_lengths", "tokenizer", "pretrained", "version", "config_source",
    "num_fewshot", "note", "run_name", "description", "revision", "contamination_study",
    "conceptual", "cogs", "random_seed", "fewshot_seed", "data_dir", "prompt_template",
    "model_name", "dinner", "", "_", "_seed_", "dir_name", "lines_file", "concat_prompt",
]  # fmt: skip


def others_keys() -> set[str]:
    """Every argument of a model of lm-eval's, and every key its tasks read from metadata."""
    spec = find_spec("lm_eval")
    assert spec
    assert spec.origin
    found = set()
    folder = Path(spec.origin).parent
    for file in sorted((folder / "models").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                found |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    for file in (folder / "tasks/ruler").glob("*.py"):
        found |= set(re.findall(r"""kwargs\.(?:get|pop)\(\s*["'](\w+)""", file.read_text()))
    return found


def refused(key: Any, chosen: tuple[str, ...] = PREFIXES, *, others: bool = False) -> str | None:
    try:
        keys.check_run([key], chosen, others=others)
    except OptionError as error:
        return str(error)
    return None


def test_every_misspelt_key_is_refused_and_every_other_passes() -> None:
    bare = {key.removeprefix(prefix) for prefix, key in LEGAL}
    pass_ = {*OF_OTHERS, *others_keys()} - bare
    assert {"max_length", "tokenizer", "trust_remote_code", "max_seq_lengths"} <= pass_
    assert len(pass_) > 120
    wrongly = [key for key in pass_ if refused(key)]
    missed = [
        one for one in MISSPELT if "{} (nearest: {})".format(*one) not in str(refused(one[0]))
    ]
    assert (len(wrongly) / len(pass_), len(missed) / len(MISSPELT)) == (0, 0), (wrongly, missed)


@given(st.sampled_from(LEGAL), st.integers(0, 40), st.sampled_from(["drop", "swap", "double"]))
def test_one_slip_of_the_finger_is_refused(legal: tuple[str, str], at: int, slip: str) -> None:
    prefix, key = legal
    at %= len(key) - 1
    made = {
        "drop": key[:at] + key[at + 1 :],
        "swap": key[:at] + key[at + 1] + key[at] + key[at + 2 :],
        "double": key[: at + 1] + key[at:],
    }[slip]
    if made in keys.keys_of(prefix):
        return
    message = refused(made, (prefix,))
    assert message is not None, made
    assert key in message


@pytest.mark.parametrize(("prefix", "key"), LEGAL)
def test_legal_keys_pass_and_lack_no_prefix(prefix: str, key: str) -> None:
    assert refused(key) is None
    bare = key.removeprefix(prefix)
    if bare != key:  # the seed of all benchmarks has no prefix
        assert f"nearest: {key}" in str(refused(bare, (prefix,)))
        assert refused(bare, (prefix,), others=True) is None, "theirs, perhaps"


def test_the_message_has_the_legal_keys_of_the_chosen_tasks_only() -> None:
    message = str(refused("cog_seed", ("lieder_",)))
    assert message == (
        "unknown metadata key cog_seed (nearest: cogs_seed); keys of the chosen tasks are: "
        "lieder_experiment, lieder_items, lieder_seed, fresh"
    )


def test_keys_that_resemble_an_unchosen_benchmarks_pass_beside_tasks_of_others() -> None:
    assert refused("diner_menu", ("cogs_",), others=True) is None
    assert refused("cogs_sead", ("cogs_",), others=True)
    assert refused("anything_at_all", (), others=True) is None
    assert refused(7) is None


NOTHING_DRAWN = "no chosen task draws any: leave it out"
BOTH = "fresh and cogs_seed are both given; fresh is the seed of all benchmarks"
IN_CONTEXT = {"cogs_separator": " =>", "cogs_seed": 7, "cogs_lexicon": "fresh"}
RUNS: list[tuple[str, dict[str, Any], str | None, list[str]]] = [
    ("diner_mini_name", {"fresh": 7}, NOTHING_DRAWN, []),
    ("conceptual_mini diner_mini_name", {"fresh": 7}, NOTHING_DRAWN, []),
    ("cogs_mini_fresh_gen", {"fresh": 7}, None, []),
    ("cogs_mini_fresh_gen diner_mini_name", {"fresh": 7}, None, []),
    ("cogs_mini_fresh_gen", {"fresh": 7, "cogs_seed": 0}, BOTH, []),
    ("lieder_mini", {"cogs_seed": 7, "lieder_experiment": "mini"}, None, ["cogs_seed"]),
    # In context COGS asks without prefix and separator; the other tasks take both.
    ("cogs_mini_icl_gen", IN_CONTEXT, None, ["cogs_separator"]),
    ("cogs_mini_id cogs_mini_icl_gen", {"cogs_prefix": "Translate: "}, None, []),
]
"""Tasks and metadata: the error, or the keys that a warning names."""


@pytest.mark.parametrize(("tasks", "given_", "error", "unused"), RUNS)
def test_a_run(
    tasks: str,
    given_: dict[str, Any],
    error: str | None,
    unused: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = own_manager([], given_)
    with caplog.at_level(logging.WARNING):
        if error:
            with pytest.raises(OptionError, match=error):
                check(manager, tasks.split(), given=given_)
        else:
            check(manager, tasks.split(), given=given_)
    assert [one.getMessage() for one in caplog.records] == [
        f"--metadata {key}: no chosen task uses it" for key in unused
    ]


def test_it_stands_in_the_signature_only_where_it_is_given() -> None:
    signed = {}
    for given_ in ({}, {"fresh": 7}, {"fresh": 8}):
        task = own_manager([], given_).load(["cogs_mini_fresh_testlex"])["tasks"]
        (one,) = task.values()
        signed[given_.get("fresh")] = one.dump_config()["metadata"]["signature"]
    assert (signed[None]["seed"], signed[None].get("fresh")) == ("0", None)
    assert (signed[7]["seed"], signed[7]["fresh"], signed[8]["fresh"]) == ("none", "7", "8")


def test_python_callers_get_the_error_from_the_task() -> None:
    """simple_evaluate merges model arguments into metadata: `seed` may be the model's there."""
    with pytest.raises(OptionError, match=r"magnifco_seed \(nearest: magnifico_seed\)"):
        own_manager([], {"magnifco_seed": 7, "seed": 1}).load(["magnifico_mini"])
    assert own_manager([], {"seed": 1, "max_length": 4}).load(["lieder_mini"])["tasks"]


def test_a_suite_of_models_is_checked() -> None:
    with pytest.raises(OptionError, match="nearest: lieder_experiment"):
        select("lieder_mini").check({"experiment": "base"}, ["experiment"])
    select("lieder_mini").check({"seed": 1})  # a model's argument


def test_no_key_is_used_or_declared_without_being_documented() -> None:
    for prefix in PREFIXES:
        name = prefix.rstrip("_")
        page = (ROOT / f"docs/benchmarks/{name}.md").read_text(encoding="utf-8")
        missing = [key for key in keys.keys_of(prefix) if not re.search(rf"\b{key}\b", page)]
        assert not missing, f"{page[:20]}: {missing}"
