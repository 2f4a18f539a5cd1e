"""Shared fixtures: the real data where available, tiny models, lm_eval as users start it."""

import copy
import functools
import gc
import itertools
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from support.commands import Command, Completed, run_here

# Tiny models are fastest on one thread, and two processes with two threads each on a busy
# machine wait for each other most of the time.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No test asks the hub, and the hub's library reads this once, when it is imported.
os.environ["HF_HUB_OFFLINE"] = "1"

# The collector walks through hundreds of thousands of objects that live to the end.
gc.set_threshold(20_000, 20, 20)

# The machine's load decides how long one example takes, and no test is about that.
# The examples are the same in every run, so that more of them find something once only.
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=200 if os.environ.get("LM_EVAL_EXT_TEST_ALL") == "1" else 50,
)
hypothesis.settings.load_profile("steady")

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would all
# processes that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LM_EVAL_EXT_DATA") or ROOT.parent / "shared" / "data").resolve()


STARTS_PROCESSES = {"cli", "lm_eval"}
"""Fixtures that start one of our commands."""

ONE_WORKERS = {"demonstration_model", "recorded_lieder", "runs"}
"""Fixtures that take seconds, for tests of several modules."""

LONGEST = {"demonstration_model", "populated", "trained_recipe"}
"""Fixtures that take minutes where nothing is kept from an earlier run."""


def _worker_group(item: pytest.Item) -> str:
    """Return a name for the fixture that one worker should build for several tests; "" for none."""
    fixtures = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 (no public name)
    shared = sorted(fixtures.keys() & ONE_WORKERS)
    if shared:
        return str(shared[0])
    for *_, definition in fixtures.values():
        is_of_module = definition.baseid.endswith(".py")
        if is_of_module and definition.scope in ("module", "session"):
            return item.path.stem
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start one of our commands, and put those first that take longest."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & STARTS_PROCESSES:
            item.add_marker(pytest.mark.e2e)
        if fixtures & LONGEST:
            item.add_marker(pytest.mark.long)
        if fixtures & (LONGEST | ONE_WORKERS):
            item.add_marker(pytest.mark.slow)
        group = _worker_group(item)
        if group and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))

    def shorter(item: pytest.Item) -> tuple[bool, bool, bool]:
        quick, short = (item.get_closest_marker(name) is None for name in ("e2e", "slow"))
        return not LONGEST & set(getattr(item, "fixturenames", ())), quick, short

    items.sort(key=shorter)


def pytest_collection_finish() -> None:
    """Spare the collector objects that live to the end, such as torch's: a third of the time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the collector end all objects, since libraries complain about those left behind."""
    gc.unfreeze()


@functools.cache
def _parsed(path: Path, text: bytes, loader: Any) -> Any:  # its functions are beside it
    import yaml

    return yaml.load(text, Loader=loader)


def _load_once(file: Any, Loader: Any) -> Any:  # noqa: N803 (as PyYAML calls it)
    """Return a copy of a YAML file's content; our own files are parsed once."""
    path = Path(file.name)
    parse = _parsed if ROOT in path.parents else _parsed.__wrapped__
    return copy.deepcopy(parse(path, file.read(), Loader))


@pytest.fixture(scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Names of folders that do not exist, one for each test."""
    folder = tmp_path_factory.mktemp("caches")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, _caches: Iterator[Path]) -> Iterator[None]:
    """No test depends on the user's cache, data or network settings."""
    for name in list(os.environ):
        if name.startswith("LM_EVAL_EXT_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(next(_caches)))
    if "lm_eval.utils" in sys.modules:
        from lm_eval.utils import env

        # lm-eval compiles a task's template for every document anew.
        if not hasattr(env.from_string, "cache_info"):
            env.from_string = functools.cache(env.from_string)
    if "lm_eval.tasks" in sys.modules:
        from lm_eval.tasks import _yaml_loader

        # lm-eval reads all our task files for every evaluation.
        if not hasattr(_yaml_loader._make_loader, "cache_info"):
            _yaml_loader._make_loader = functools.cache(_yaml_loader._make_loader)
            module_names = {**vars(_yaml_loader.yaml), "load": _load_once}
            _yaml_loader.yaml = SimpleNamespace(**module_names)
    if "torch" in sys.modules:
        from torch.utils import collect_env

        # Every results file has torch's description of the machine, for which pip and a dozen
        # other programs run: a second each time.
        if not hasattr(collect_env.get_pretty_env_info, "cache_info"):
            collect_env.get_pretty_env_info = functools.cache(collect_env.get_pretty_env_info)
    yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real data, read in place; skips where they are not available."""
    if not SHARED.is_dir():
        pytest.skip(
            "the benchmarks' original data are not available (../shared/data or LM_EVAL_EXT_DATA)"
        )
    return SHARED


@pytest.fixture(scope="session")
def run_cache() -> Path:
    """A cache folder for all workers and runs, so that populated databases are built once."""
    from support import kept

    names = ("sql", "data", "benchmarks/magnifico", "benchmarks/diner")
    sources = [*sorted(kept.PACKAGE.glob("*.py")), *(kept.PACKAGE / name for name in names)]
    return kept.folder_for("cache", kept.key_of(sources, ["sqlglot"]))


@pytest.fixture
def kept_cache(run_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes the package use the shared cache, for data that are slow to build."""
    monkeypatch.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
    return run_cache


@pytest.fixture
def real_data(shared_data: Path, kept_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The real data, with the package configured to use them."""
    monkeypatch.setenv("LM_EVAL_EXT_DATA", str(shared_data))
    return shared_data


@pytest.fixture(scope="session")
def populated(shared_data: Path, run_cache: Path) -> Path:
    """The cache with the populated copies of MAGNIFICo's databases: minutes, where they are new.

    Tests that start a subprocess ask for it, so that the building does not count as the
    subprocess's time.
    """
    from lm_eval_ext.benchmarks.magnifico import load

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_DATA", str(shared_data))
        environment.setenv("LM_EVAL_EXT_CACHE", str(run_cache))
        load.prepared(load.dataset.options({}))
    return run_cache


@pytest.fixture(scope="session")
def tiny_models() -> Path:
    """A folder with tiny random models: ``gpt2`` (no BOS), ``llama`` (BOS) and ``t5``."""
    from support import families, kept

    def make(folder: Path) -> None:
        for model_type in families.MODEL_TYPES:
            families.make_large(model_type, folder / model_type)

    key = kept.key_of([Path(str(families.__file__))], ["torch", "transformers", "tokenizers"])
    return kept.built_once("tiny-models", key, make)


@pytest.fixture(scope="session")
def recorded_lieder(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the authors' recorded runs: folders ``experiment/model``, for reading only."""
    from support import logged

    folder = tmp_path_factory.mktemp("lieder")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LM_EVAL_EXT_DATA", str(shared_data))
        for responses in (shared_data / "lieder/recorded").glob("*.responses.jsonl"):
            experiment, _, model = responses.name.removesuffix(".responses.jsonl").partition("_")
            target = folder / experiment / model
            arguments = {"path": str(responses)}
            logged.evaluate(target, "recorded", [f"lieder_{experiment}"], model_args=arguments)
            (target / "model.yaml").write_text(f"display_name: {model}\n")
    return folder


def trained_on() -> str:
    """Return a key of the code that trains and of the texts it trains on."""
    from support import kept

    sources = [kept.PACKAGE / name for name in ("training", "demo", "lexicon.py", "benchmarks")]
    return kept.key_of(sources, ["accelerate", "torch", "transformers", "tokenizers"])


@pytest.fixture(scope="session")
def demonstration_model() -> Path:
    """The model that the recipe `demo` trains: three minutes, once."""
    from support import kept

    def make(folder: Path) -> None:
        tool = str(Path(sys.executable).parent / "lm-eval-ext")
        command = [tool, "train", "demo", "-o", str(folder)]
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=900, check=False
        )
        assert completed.returncode == 0, completed.stderr[-2000:]

    return kept.built_once("demonstration-model", trained_on(), make) / "demo"


@pytest.fixture(scope="session")
def trained_recipe() -> Callable[[str], Any]:
    """A function that trains a tiny recipe that ships: a minute each, once."""
    from support import kept

    from lm_eval_ext.training.command import MODELS, Trained, record_of, train

    def get(name: str) -> Any:
        def make(partial: Path) -> None:
            train(name, partial / name)

        folder = kept.built_once(f"recipe-{name}", trained_on(), make)
        model = folder / name / name
        return Trained(model, record_of(model), folder / name / MODELS / f"{name}.yaml")

    return get


@pytest.fixture(scope="session")
def small_lm_eval(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import lm-eval from that has one task of its own."""
    from support import small_lm_eval as small

    return small.copy_to(tmp_path_factory.mktemp("small-lm-eval"))


@pytest.fixture
def small_index(small_lm_eval: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """lm-eval's index has one task of its own."""
    from support.small_lm_eval import index_from

    index_from(small_lm_eval, monkeypatch)


@pytest.fixture
def cli(tmp_path: Path, small_lm_eval: Path) -> Command:
    """Return a function that runs ``lm-eval-ext``, or another command, in the test's folder.

    It runs in the test's process, unless ``cold=True`` starts one as users do.
    """

    def run(
        *words: str,
        name: str = "lm-eval-ext",
        env: dict[str, str] | None = None,
        cold: bool = False,
        output: Path = tmp_path / "output",
    ) -> Completed:
        command = [str(Path(sys.executable).parent / name), *words]
        paths = [str(small_lm_eval)]
        if os.environ.get("PYTHONPATH"):
            paths.append(os.environ["PYTHONPATH"])
        variables = {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200", **(env or {})}
        if cold:
            completed = subprocess.run(
                command,
                env={**os.environ, **variables},
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=900,
                check=False,
            )
        else:
            mains = {
                "lm_eval": "lm_eval.__main__:cli_evaluate",
                "lm-eval-ext": "lm_eval_ext.cli:main",
            }
            completed = run_here(
                pkgutil.resolve_name(mains[name]), command,
                environment=variables, folder=tmp_path, small_lm_eval=small_lm_eval,
            )  # fmt: skip
        return Completed(completed.returncode, completed.stdout, completed.stderr, output)

    return run


@pytest.fixture
def lm_eval(tmp_path: Path, cli: Command) -> Command:
    """Return a function that runs plain ``lm_eval`` as a user does (:func:`cli`), with samples."""

    def run(*words: str, output: Path = tmp_path / "output", **options: Any) -> Completed:
        logging_words = ("--output_path", str(output), "--log_samples")
        return cli(*words, *logging_words, name="lm_eval", output=output, **options)

    return run
