"""Models on a Ray cluster: a real one on this machine, whose nodes do not see the output folder."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lm_eval_ext.errors import OptionError
from lm_eval_ext.runs import ray_cluster
from lm_eval_ext.runs.job import Reporter
from lm_eval_ext.runs.run import FailedError, Work, plan

ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'lm-eval-ext[ray]')")


@pytest.fixture
def work(tmp_path: Path) -> Work:
    models = tmp_path / "models"
    models.mkdir()
    (models / "sound.yaml").write_text("model: dummy\n")
    (models / "broken.yaml").write_text("model: dummy\nlauncher: no-such-command\n")
    return Work([models], "lieder_mini", tmp_path / "out", limit=2)


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_results_come_back_and_failures_are_explained(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch = Path.touch

    def hidden(self: Path) -> None:
        if ".ray-" not in self.name:
            touch(self)

    monkeypatch.setattr(Path, "touch", hidden)
    lines: list[str] = []
    with pytest.raises(FailedError, match=r"1 of 2 models failed: broken: launcher 'no-such-"):
        ray_cluster.run_on(work, "local", Reporter(lines.append, lambda _: None))
    assert "sound: done" in lines
    assert [one["tasks"] for one in plan(work)] == [["lieder_mini"], []]
    there = {path.name.partition("_")[0] for path in (work.output / "sound").iterdir()}
    assert there == {"results", "run", "samples", "log.txt", "model.yaml"}
    assert (work.output / "broken" / "log.txt").is_file()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "somewhere", "h:port"])
def test_an_address_where_nothing_answers_is_one_line(work: Work, address: str) -> None:
    with pytest.raises(OptionError, match=r"no Ray cluster at|must be HOST:PORT"):
        ray_cluster.run_on(work, address, Reporter(print, print))
    assert not work.output.exists()


def test_resources_become_options() -> None:
    assert ray_cluster.parameters({}) == {"num_gpus": 0, "num_cpus": 1, "max_retries": 3}
    given = {"gpus": 2, "cpus": 8, "extra": {"resources": {"a100": 1}}}
    assert ray_cluster.parameters(given) == {
        "num_gpus": 2, "num_cpus": 8, "max_retries": 3, "resources": {"a100": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ({"extra": {"constraint": "a100"}}, "m: resources: Ray refuses them: .*constraint"),
        ({"extra": {"num_gpus": "many"}}, "m: resources: Ray refuses them: .*num_gpus"),
        ({"gpus": 2}, "m: resources ask for 2 GPUs, and no node of the Ray cluster has more"),
    ],
)
def test_resources_that_no_node_gives_are_one_line(resources: dict[str, Any], why: str) -> None:
    nodes = [{"Alive": True, "Resources": {"CPU": 4.0, "GPU": 1.0}},
             {"Alive": False, "Resources": {"CPU": 8.0, "GPU": 8.0}}]  # fmt: skip
    cluster = SimpleNamespace(remote=ray.remote, nodes=lambda: nodes)
    with pytest.raises(OptionError, match=why):
        ray_cluster._task(cluster, "m", ray_cluster.parameters(resources))
