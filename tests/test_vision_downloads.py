"""What comes from the network: its digest, its revision, and what is done if it is wrong."""

import hashlib
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant._base.write import digest_of
from calibrant.vision import Images, Item, infer, load_model, open_images
from calibrant.vision import _models as models
from calibrant.vision._models import read_weights, weights_digest

NAME, TAG = "test_vit", "r160_in1k"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def torch(part):
    return part("torch")


@pytest.fixture(scope="module")
def timm(torch, part):
    return part("timm")


# -- which PyTorch may open a file ------------------------------------------------------


@pytest.fixture
def weights(torch, tmp_path):
    torch.save({"logits": torch.zeros(2, 3)}, tmp_path / "a.pt")
    return tmp_path / "a.pt"


@pytest.mark.parametrize("old", ["1.13.1", "2.5.1+cpu", "2.9.1", "2.10.0a0+git12"])
@pytest.mark.parametrize("way", ["weights", "predictions"])
def test_a_pytorch_that_is_not_safe_opens_nothing(
    torch, weights, monkeypatch, old, way
):
    from calibrant.files import read

    monkeypatch.setattr(torch, "__version__", old)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(ValueError, match=r"a\.pt: is not opened") as caught:
        (read_weights if way == "weights" else read)(weights)
    for said in (f"PyTorch {old},", "'torch>=2.10'", ".safetensors or .npz"):
        assert said in str(caught.value)


@pytest.mark.parametrize("new", ["2.10.0", "2.10", "2.13.0+cpu", "3.0.0"])
def test_a_pytorch_that_is_safe_opens_files(torch, weights, monkeypatch, new):
    monkeypatch.setattr(torch, "__version__", new)
    assert list(read_weights(weights)) == ["logits"]


def test_no_pytorch_that_is_not_safe_is_installed_with_an_extra():
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8")
    floors = re.findall(r'"torch>=([\d.]+)"', text)
    assert floors == ["2.10", "2.10"]  # of `torch` and of `vision`


def test_a_sparse_tensor_is_no_weight(torch, tmp_path):
    sparse = torch.zeros(2, 2).to_sparse()
    torch.save({"a": sparse}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"tensors of model\.state_dict\(\) by name"):
        read_weights(tmp_path / "a.pt")


# -- weights of the CIFAR networks ------------------------------------------------------

CIFAR = "cifar10_resnet20"


@pytest.fixture
def release(torch, tmp_path, monkeypatch):
    """A server that has the weights of one network, and where PyTorch keeps them."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    network = models.resnet(CIFAR)
    made = tmp_path / "made.pt"
    torch.save(network.state_dict(), made)
    digest = digest_of(made)
    file = made.rename(tmp_path / f"{CIFAR}-{digest[:8]}.pt")
    monkeypatch.setattr(models, "RELEASE", tmp_path.as_uri())
    monkeypatch.setitem(models.DIGESTS, CIFAR, digest)
    kept = tmp_path / "home" / "hub" / "checkpoints"
    return SimpleNamespace(file=file, digest=digest, kept=kept, network=network)


def test_weights_are_fetched_once_and_their_source_is_known(release):
    found = load_model(CIFAR)
    assert weights_digest(found.network) == weights_digest(release.network)
    assert found.source == {
        "weights_file": release.file.as_uri(),
        "weights_file_sha256": release.digest,
    }
    release.file.unlink()
    again = load_model(CIFAR)
    assert weights_digest(again.network) == weights_digest(release.network)


def test_weights_of_another_digest_are_refused_and_not_kept(release, monkeypatch):
    """Also if the digest begins as it should, which is all that PyTorch would check."""
    other = release.digest[:8] + release.digest[:7:-1]
    monkeypatch.setitem(models.DIGESTS, CIFAR, other)
    with pytest.raises(OSError, match=f'expected "{other}", got "{release.digest}"'):
        load_model(CIFAR)
    assert list(release.kept.iterdir()) == []


def test_kept_weights_that_were_changed_are_not_opened(release, torch, monkeypatch):
    load_model(CIFAR)
    (kept,) = release.kept.iterdir()
    kept.write_bytes(b"changed")
    assert weights_digest(load_model(CIFAR).network) == weights_digest(release.network)
    kept.write_bytes(b"changed")
    release.file.unlink()
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(OSError, match="cannot be downloaded"):
        load_model(CIFAR)
    assert not kept.exists()


def test_weights_whose_whole_digest_nobody_knows_are_not_downloaded(torch):
    unknown = [name for name, digest in models.DIGESTS.items() if len(digest) < 64]
    assert unknown == ["cifar10_resnet44", "cifar100_resnet44"]
    message = r"only the beginning is known \(2a3cabcb\); fetch https.*--checkpoint"
    with pytest.raises(ValueError, match=message):
        load_model("cifar10_resnet44")


def test_digests_are_digests():
    for digest in models.DIGESTS.values():
        assert re.fullmatch("[0-9a-f]{8}|[0-9a-f]{64}", digest)


# -- weights of timm's networks ---------------------------------------------------------


class Hub:
    """The cache of huggingface_hub with one file in it, and what was asked for."""

    def __init__(self, root, content):
        self.digest = hashlib.sha256(content).hexdigest()
        self.blob = root / "blobs" / self.digest
        self.file = root / "snapshots" / COMMIT / "model.safetensors"
        for path in (self.blob, self.file):
            path.parent.mkdir(parents=True)
        self.blob.write_bytes(content)
        self.file.symlink_to(self.blob)
        self.asked = []

    def hf_hub_download(self, repository, filename, revision=None):
        self.asked.append((repository, filename, revision))
        return str(self.file)


@pytest.fixture
def network(torch, timm):
    torch.manual_seed(0)
    return timm.create_model(NAME, pretrained=False)


@pytest.fixture
def hub(network, part, tmp_path, monkeypatch):
    content = part("safetensors.torch").save(network.state_dict())
    hub = Hub(tmp_path / "cache", content)
    library = part("huggingface_hub")
    monkeypatch.setattr(library, "hf_hub_download", hub.hf_hub_download)
    return hub


@pytest.mark.parametrize("revision", [None, "v1", COMMIT])
def test_published_weights_are_those_of_a_commit(hub, network, revision):
    pin = f"@{revision}" if revision else ""
    found = load_model(f"{NAME}.{TAG}{pin}")
    assert weights_digest(found.network) == weights_digest(network)
    assert found.name == f"{NAME}.{TAG}"
    repository = f"timm/{NAME}.{TAG}"
    assert hub.asked == [(repository, "model.safetensors", revision)]
    assert found.source == {
        "weights_repository": repository,
        "weights_revision": COMMIT,
        "weights_file": "model.safetensors",
        "weights_file_sha256": hub.digest,
    }


def test_published_weights_of_another_digest_are_refused_and_not_kept(hub):
    hub.blob.write_bytes(hub.blob.read_bytes()[:-1] + b"\1")
    with pytest.raises(OSError, match=f"not {hub.digest}, and were deleted"):
        load_model(f"{NAME}.{TAG}")
    assert not hub.blob.exists()
    assert not hub.file.is_symlink()


def test_published_weights_are_never_a_pickle(hub, torch, network, monkeypatch):
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("it was opened"))
    torch.save(network.state_dict(), hub.blob)
    hub.blob.rename(hub.blob.with_name("content"))
    hub.file.unlink()
    hub.file.symlink_to(hub.blob.with_name("content"))
    with pytest.raises(ValueError, match=r"model\.safetensors: cannot be read"):
        load_model(f"{NAME}.{TAG}")


def test_weights_that_are_not_on_the_hub_are_refused(timm):
    with pytest.raises(ValueError, match=r"which tells their digest; fetch https://.*"):
        load_model("gcvit_tiny.in1k")


@pytest.mark.parametrize("name", [f"{CIFAR}@v1", f"{NAME}@v1"])
def test_a_revision_of_what_has_none_is_refused(timm, name, tmp_path):
    with pytest.raises(ValueError, match="has no revisions here; leave out @v1"):
        load_model(name, checkpoint=tmp_path / "a.pt")


# -- data sets, and the manifest --------------------------------------------------------


@pytest.fixture
def stream(part, monkeypatch):
    """A data set on the hub whose main branch moves."""
    datasets, library = part("datasets"), part("huggingface_hub")
    commits = {None: COMMIT}

    class Api:
        def dataset_info(self, where, revision=None):
            return SimpleNamespace(sha=commits.get(revision, revision))

    def load(where, *, split, revision, streaming):
        asked.append(revision)
        image = [{"bytes": b"x", "path": None}]
        rows = datasets.Dataset.from_dict({"image": image, "label": [0]})
        return rows.cast_column("image", datasets.Image()).to_iterable_dataset()

    asked = []
    monkeypatch.setattr(library, "HfApi", Api)
    monkeypatch.setattr(datasets, "load_dataset", load)
    return SimpleNamespace(commits=commits, asked=asked)


def test_a_stream_is_of_one_commit(stream):
    first = open_images("hf:a/b")
    assert stream.asked == [COMMIT]
    assert first.source == {"images_repository": "a/b", "images_revision": COMMIT}
    assert open_images("hf:a/b").fingerprint == first.fingerprint
    stream.commits[None] = COMMIT[::-1]
    moved = open_images("hf:a/b")
    assert stream.asked[-1] == COMMIT[::-1]
    assert moved.fingerprint != first.fingerprint  # so that no run goes on with it


def test_a_stream_may_be_pinned(stream):
    open_images(f"hf:a/b@{COMMIT[::-1]}")
    assert stream.asked == [COMMIT[::-1]]


def test_the_manifest_tells_sources_which_do_not_stop_a_run_from_going_on(
    hub, tmp_path
):
    grey = np.full((32, 32, 3), 128, np.uint8)
    where = {"images_repository": "a/b", "images_revision": COMMIT}
    items = [Item("grey", 3, grey)]
    mine = Images("mine", lambda: iter(items), "v1", 1, source=where)
    model = load_model(f"{NAME}.{TAG}")
    infer(model, mine, tmp_path / "out")
    content = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert content["sources"] == {**model.source, **where}
    assert not set(content["sources"]) & set(content["settings"])
    elsewhere = Images("mine", lambda: iter(items), "v1", 1)
    assert infer(model, elsewhere, tmp_path / "out").manifest.complete
