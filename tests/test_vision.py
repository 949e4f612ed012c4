"""From images to logits: the network's own numbers, kept whole through any accident."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from PIL import Image
from torchvision_operators import FIRST

import calibrant as cal
from calibrant.files import read
from calibrant.vision import Images, Item, Model, infer, load_model, open_images
from calibrant.vision import _inference as inference_module
from calibrant.vision._inference import MANIFEST, read_manifest

ARCHITECTURE, CLASSES, ROWS = "test_vit", 3, 11
SMALL = {"batch_size": 2, "shard_rows": 4}  # shards of 4, 4 and 3 rows


@pytest.fixture(scope="module")
def torch(part):
    """PyTorch with one thread, for the last bits of logits depend on their number."""
    torch = part("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def timm(torch, part):
    return part("timm")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Generated images of several sizes, in class sub-folders."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for number in range(ROWS):
        place = folder / "abc"[number % CLASSES]
        place.mkdir(exist_ok=True)
        size = (*rng.integers(150, 300, size=2), 3)
        noise = rng.integers(0, 256, size=size, dtype=np.uint8)
        Image.fromarray(noise).save(place / f"{number:02d}.png")
    return folder


@pytest.fixture(scope="module")
def weights(tmp_path_factory, torch, timm):
    """A random network of three classes, as its owner would save it."""
    torch.manual_seed(0)
    network = timm.create_model(ARCHITECTURE, pretrained=False, num_classes=CLASSES)
    path = tmp_path_factory.mktemp("weights") / "weights.pt"
    torch.save(network.state_dict(), path)
    return path


@pytest.fixture(scope="module")
def model(weights):
    return load_model(ARCHITECTURE, checkpoint=weights, device="cpu")


@pytest.fixture(scope="module")
def finished(model, photos, tmp_path_factory):
    """The folder of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("finished") / "logits"
    infer(model, open_images(photos), folder, **SMALL)
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def linear(torch, outputs=4, scale=1.0):
    """A network that is fast and whose logits one can check: means of the colours."""

    class Means(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(outputs, 3) * scale)

        def forward(self, x):
            return x.mean(dim=(2, 3)) @ self.weight.T

    def prepare(image):
        return torch.from_numpy(np.array(image).transpose(2, 0, 1)).float()

    return Model("means", Means().eval(), prepare)


def colours(n=6, labels=(0, 1, 2, 3)):
    """Images of one colour each."""
    grid = [np.full((2, 2, 3), number, np.uint8) for number in range(n)]
    items = [Item(f"i{i}", labels[i % len(labels)], x) for i, x in enumerate(grid)]
    return Images("colours", lambda: iter(items), "f", n)


# -- logits ---------------------------------------------------------------------------


def test_logits_are_those_of_timms_own_transform_and_network(
    finished, photos, weights, torch, timm
):
    network = timm.create_model(ARCHITECTURE, num_classes=CLASSES).eval()
    network.load_state_dict(torch.load(weights, weights_only=True))
    transform = timm.data.create_transform(
        **timm.data.resolve_data_config(network.pretrained_cfg), is_training=False
    )
    found = read(finished)
    paths = sorted(photos.rglob("*.png"))
    for row, path in enumerate(paths):
        with Image.open(path) as image, torch.inference_mode():
            (expected,) = network(transform(image.convert("RGB"))[None]).numpy()
        np.testing.assert_allclose(found.scores[row], expected, rtol=1e-4, atol=1e-5)
    assert found.scores.std(axis=0).min() > 1e-3, "images must differ to be told apart"
    assert found.y.tolist() == ["abc".index(path.parent.name) for path in paths]


def test_batches_of_the_same_size_give_the_same_bits(finished, model, photos, torch):
    paths = sorted(photos.rglob("*.png"))[:2]
    tensors = [model.prepare(Image.open(path).convert("RGB")) for path in paths]
    with torch.inference_mode():
        expected = model.network(torch.stack(tensors)).numpy()
    np.testing.assert_array_equal(read(finished).scores[:2], expected)


def test_shards_are_read_like_any_other_folder(finished):
    found = read(finished)
    assert found.kind == "logits"
    assert found.scores.shape == (ROWS, CLASSES)
    ev = cal.evaluate(**found.arguments)
    assert ev.n == ROWS
    with np.load(finished / "shard-00002.npz", allow_pickle=False) as last:
        assert last["logits"].dtype == np.float32
        assert last["image"].tolist() == ["c/02.png", "c/05.png", "c/08.png"]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_rows_come_in_order_whatever_the_batches(torch, tmp_path, batch_size, workers):
    infer(
        linear(torch),
        colours(20),
        tmp_path / "out",
        batch_size=batch_size,
        shard_rows=7,
        workers=workers,
    )
    found = read(tmp_path / "out")
    expected = np.outer(np.arange(20), [1, 1, 1, 0])
    np.testing.assert_array_equal(found.scores, expected)
    assert found.y.tolist() == [i % 4 for i in range(20)]


def test_progress_and_limit(torch, tmp_path):
    told = []
    run = infer(
        linear(torch),
        colours(20),
        tmp_path / "out",
        **SMALL,
        limit=5,
        progress=lambda rows, of: told.append((rows, of)),
    )
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert run.manifest.rows == len(read(tmp_path / "out")) == 5


def test_half_precision_is_storage_only(torch, tmp_path):
    infer(linear(torch, scale=1 / 3), colours(9), tmp_path / "half", dtype="float16")
    half = read(tmp_path / "half").scores
    assert half.dtype == np.float16
    exact = np.outer(np.arange(9), np.array([1, 1, 1, 0], np.float32) / np.float32(3))
    np.testing.assert_array_equal(half, exact.astype(np.float16))
    ev = cal.evaluate(**read(tmp_path / "half").arguments)
    expected = cal.nll(np.arange(9) % 4, logits=exact)
    assert ev.metrics["nll"] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 1e5}, r"logits of i1 are too large for float16"),
        ({"scale": float("nan")}, r"means gives NaN or infinite logits for i0"),
        ({"outputs": 2}, r"i2 has the class 2, but the model's are 0 to 1"),
    ],
)
def test_logits_that_cannot_be_kept_are_refused(torch, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        infer(linear(torch, **options), colours(), tmp_path / "out", dtype="float16")


def test_what_a_network_cannot_run_is_said_in_one_line(torch, tmp_path):
    sizes = [np.zeros((2, 2 + n, 3), np.uint8) for n in range(2)]
    items = [Item(f"i{n}", 0, size) for n, size in enumerate(sizes)]
    images = Images("sizes", lambda: iter(items), "f")
    with pytest.raises(ValueError, match=r"means cannot run 2 images at once \(stack"):
        infer(linear(torch), images, tmp_path)
    infer(linear(torch), images, tmp_path, batch_size=1, force=True)
    features = Model("body", torch.nn.Identity(), linear(torch).prepare)
    with pytest.raises(ValueError, match="body is no classifier"):
        infer(features, images, tmp_path, batch_size=1, force=True)


def test_a_preparation_that_refuses_an_image_is_told_which(torch, tmp_path):
    def refuse(image):
        raise ValueError("too small.")

    picky = Model("picky", linear(torch).network, refuse)
    with pytest.raises(ValueError, match=r"^i0: too small\.$"):
        infer(picky, colours(), tmp_path)


def test_no_images_are_no_run(torch, tmp_path):
    with pytest.raises(ValueError, match="nothing has no images"):
        infer(linear(torch), Images("nothing", lambda: iter(()), "f"), tmp_path)


def test_classes_must_be_as_many_as_outputs(torch, tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / "in" / name).mkdir(parents=True)
        Image.new("RGB", (2, 2)).save(tmp_path / "in" / name / "1.png")
    with pytest.raises(ValueError, match=r"has 2 classes, but the model has 4 outputs"):
        infer(linear(torch), open_images(tmp_path / "in"), tmp_path / "out")
    named = open_images(tmp_path / "in", classes=["fox", "dog", "cow", "cat"])
    infer(linear(torch), named, tmp_path / "out", force=True)
    assert read(tmp_path / "out").y.tolist() == [3, 1]


@pytest.mark.parametrize("name", ["batch_size", "shard_rows", "workers", "limit"])
def test_sizes_must_be_positive(torch, tmp_path, name):
    with pytest.raises(
        ValueError, match=f"{name} must be a whole number from 1 on, got 0"
    ):
        infer(linear(torch), colours(), tmp_path / "out", **{name: 0})
    assert not (tmp_path / "out").exists()


# -- runs that were stopped -----------------------------------------------------------


@pytest.mark.parametrize("row", range(2, ROWS + 1))
def test_a_stopped_run_goes_on_to_the_same_bits(torch, tmp_path, row):
    def stop(rows, of):
        if rows >= row:
            raise KeyboardInterrupt

    model, images = linear(torch, scale=0.1), colours(ROWS)
    infer(model, images, tmp_path / "whole", **SMALL)
    with pytest.raises(KeyboardInterrupt):
        infer(model, images, tmp_path / "out", **SMALL, progress=stop)
    assert not read_manifest(tmp_path / "out").complete
    told = []
    infer(
        model,
        images,
        tmp_path / "out",
        **SMALL,
        progress=lambda rows, of: told.append(rows),
    )
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert told[0] > 4 * ((row - 1) // 4), "finished shards are not run again"


def test_a_stop_between_a_shard_and_its_manifest_loses_nothing(
    torch, tmp_path, monkeypatch
):
    model, images = linear(torch), colours(ROWS)
    infer(model, images, tmp_path / "whole", **SMALL)
    write, calls = inference_module.write_manifest, []

    def stop_at_the_third(folder, manifest):
        calls.append(manifest)
        if len(calls) == 3:
            raise KeyboardInterrupt
        write(folder, manifest)

    with monkeypatch.context() as patch:
        patch.setattr(inference_module, "write_manifest", stop_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            infer(model, images, tmp_path / "out", **SMALL)
    assert (tmp_path / "out" / "shard-00001.npz").exists()
    assert len(read_manifest(tmp_path / "out").shards) == 1
    infer(model, images, tmp_path / "out", **SMALL)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_killed_process_is_finished_by_another(finished, photos, weights, tmp_path):
    code = f"""
        import os, signal, torch
        from calibrant.vision import infer, load_model, open_images

        torch.set_num_threads(1)

        def stop(rows, of):
            if rows == 6:  # in the middle of the second shard
                os.kill(os.getpid(), signal.SIGKILL)

        model = load_model({ARCHITECTURE!r}, checkpoint={str(weights)!r}, device="cpu")
        images = open_images({str(photos)!r})
        infer(model, images, "logits", batch_size=2, shard_rows=4, progress=stop)
    """
    killed = subprocess.run(
        [sys.executable, "-c", FIRST + textwrap.dedent(code)],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    out = tmp_path / "logits"
    left = {name for name in contents(out) if not name.endswith(".lock")}
    assert left == {MANIFEST, "shard-00000.npz"}
    (out / ".calibrant-abcd1234.tmp").write_bytes(b"half")
    infer(
        load_model(ARCHITECTURE, checkpoint=weights, device="cpu"),
        open_images(photos),
        out,
        **SMALL,
    )
    assert contents(out) == contents(finished)


# -- damage ---------------------------------------------------------------------------


@pytest.fixture
def done(torch, tmp_path):
    """A finished run to damage, and how to run it again."""

    def again(images=None, model=None, **options):
        return infer(
            model or linear(torch),
            images or colours(ROWS),
            tmp_path / "out",
            **{**SMALL, **options},
        )

    again()
    return tmp_path / "out", again


def test_a_finished_run_is_not_run_again(done):
    folder, again = done
    before = contents(folder)
    images = Images("colours", lambda: pytest.fail("looked at"), "f", ROWS)
    assert again(images).redone == ()
    assert contents(folder) == before


@pytest.mark.parametrize("name", ["shard-00000.npz", "shard-00001.npz"])
@pytest.mark.parametrize("how", ["flip", "cut", "remove"])
def test_a_damaged_shard_is_found_and_done_again(done, name, how):
    folder, again = done
    before, path = contents(folder), folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content) if how == "flip" else content[:50])
    if how == "remove":
        path.unlink()
    assert again().redone == (name,)
    assert contents(folder) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('"rows": 4', '"rows": 3', 1),
        lambda text: text[:40],
        lambda text: "[]",
        lambda text: "{}",
        lambda text: text.replace('"complete": true', '"complete": false'),
    ],
)
def test_a_damaged_manifest_is_refused(done, damage):
    folder, again = done
    before, path = contents(folder), folder / MANIFEST
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=r"manifest\.json: is damaged.*force=True"):
        again()
    again(force=True)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"dtype": "float16"}, "dtype"),
        ({"batch_size": 3}, "batch_size"),
        ({"shard_rows": 5}, "shard_rows"),
        ({"limit": 7}, "limit"),
        ({"images": Images("colours", lambda: iter(()), "g", 9)}, "images_sha256"),
    ],
)
def test_logits_of_two_runs_are_not_mixed(done, options, word):
    _, again = done
    with pytest.raises(ValueError, match=rf"was begun with {word} .*force=True"):
        again(**options)


def test_other_weights_are_another_model(done, torch):
    _, again = done
    with pytest.raises(ValueError, match="was begun with weights_sha256"):
        again(model=linear(torch, scale=2.0))


def test_a_folder_with_other_files_is_left_alone(done):
    folder, again = done
    (folder / "notes.csv").write_text("mine")
    for force in (True, False):
        with pytest.raises(ValueError, match=r"other files in it \(notes\.csv\)"):
            again(force=force)
    (folder / "notes.csv").unlink()
    (folder / MANIFEST).unlink()
    with pytest.raises(ValueError, match=r"has shards but no manifest\.json"):
        again()


def test_a_stream_that_has_become_shorter_is_not_finished(torch, tmp_path):
    def stop(rows, of):
        if rows > 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        infer(linear(torch), colours(9), tmp_path, **SMALL, progress=stop)
    with pytest.raises(ValueError, match="colours has fewer images than before"):
        infer(linear(torch), colours(6), tmp_path, **SMALL)


def test_the_manifest_holds_the_digests_of_the_files(finished):
    content = json.loads((finished / MANIFEST).read_text())
    for shard in content["shards"]:
        digest = hashlib.sha256((finished / shard["file"]).read_bytes()).hexdigest()
        assert shard["sha256"] == digest
    assert [shard["rows"] for shard in content["shards"]] == [4, 4, 3]
    assert content["settings"]["input_size"] == "(3, 160, 160)"


# -- in a process of its own ----------------------------------------------------------


def test_nothing_heavy_is_loaded_before_it_is_used():
    code = "import calibrant.vision, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    heavy = {"torch", "timm", "torchvision", "PIL", "datasets", "safetensors"}
    assert not heavy & set(done.stdout.split())


def test_a_missing_package_is_named_with_the_way_to_get_it(photos, tmp_path):
    blocked = "import sys; sys.modules['torch'] = None; from calibrant.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", blocked, "infer", "x", "--images", photos, "-o", "out"],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: calibrant.vision needs PyTorch: ")
    assert "pip install 'calibrant[vision]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
