"""Images: every kind of source gives the same pictures, in order, or one clear error."""

import io
import json
import tarfile

import numpy as np
import pytest
from PIL import Image

from calibrant.vision import open_images
from calibrant.vision._images import Item, picture


def pixels(seed, height=20, width=24):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, size=(height, width, 3), dtype=np.uint8)


def png(seed, **size):
    file = io.BytesIO()
    Image.fromarray(pixels(seed, **size)).save(file, "PNG")
    return file.getvalue()


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def listed(images):
    return [(item.name, item.label) for item in images.items()]


def decoded(images):
    return [np.asarray(picture(item)) for item in images.items()]


# -- folders --------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(["dog/b.png", "dog/a.PNG", "cat/x/1.png"]):
        put(tmp_path / "in" / name, png(number))
    put(tmp_path / "in" / "dog" / "notes.txt", b"not an image")
    put(tmp_path / "in" / ".cache" / "c.png", png(9))
    return tmp_path / "in"


def test_sub_folders_are_classes_in_alphabetical_order(folder):
    images = open_images(folder)
    assert listed(images) == [("cat/x/1.png", 0), ("dog/a.PNG", 1), ("dog/b.png", 1)]
    assert images.classes == ("cat", "dog")
    assert images.count == 3
    for found, seed in zip(decoded(images), (2, 1, 0), strict=True):
        np.testing.assert_array_equal(found, pixels(seed))
    assert listed(images) == listed(images), "a second look gives the same"


def test_sub_folders_named_by_numbers_are_those_classes(tmp_path):
    # In alphabetical order, 10 would come before 2.
    for name in ("2", "10", "0"):
        put(tmp_path / name / "a.png", png(0))
    images = open_images(tmp_path)
    assert [label for _, label in listed(images)] == [0, 10, 2]
    assert images.classes is None


def test_named_classes_say_which_output_a_sub_folder_is(folder):
    images = open_images(folder, classes=["wolf", "dog", "cat"])
    assert [label for _, label in listed(images)] == [2, 1, 1]
    with pytest.raises(ValueError, match="'dog' is not among them"):
        open_images(folder, classes=["cat", "cow"])


def test_the_fingerprint_is_that_of_names_labels_and_sizes(folder):
    before = open_images(folder).fingerprint
    assert open_images(folder).fingerprint == before
    assert open_images(folder, classes=["dog", "cat"]).fingerprint != before
    put(folder / "dog" / "b.png", png(5, height=40))
    assert open_images(folder).fingerprint != before


@pytest.mark.parametrize(
    "text",
    [
        "b.png,1\na.png,0\n",
        "\ufefffile,label\nb.png,1\n\na.png,0\n",
        "b.png\t1\na.png\t0",
        "b.png 1\r\na.png 0\r\n",
    ],
)
def test_a_file_of_labels_decides_classes_and_order(tmp_path, text):
    for name in ("a.png", "b.png", "unlisted.png"):
        put(tmp_path / "in" / name, png(0))
    labels = tmp_path / "labels.csv"
    labels.write_text(text, encoding="utf-8", newline="")
    images = open_images(tmp_path / "in", labels=labels)
    assert listed(images) == [("b.png", 1), ("a.png", 0)]


def test_labels_may_be_names(tmp_path):
    put(tmp_path / "in" / "a b, c.png", png(0))
    labels = tmp_path / "labels.csv"
    labels.write_text("a b, c.png,tree frog\n")
    images = open_images(tmp_path / "in", labels=labels, classes=["x", "tree frog"])
    assert listed(images) == [("a b, c.png", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no lines"),
        ("a.png,0\nb.png\n", "line 2 must be a file name and its class"),
        ("a.png,0\nz.png,1\n", "lists z.png, which is not in"),
    ],
)
def test_a_bad_file_of_labels_is_named(tmp_path, text, message):
    put(tmp_path / "in" / "a.png", png(0))
    labels = tmp_path / "labels.csv"
    labels.write_text(text)
    with pytest.raises(ValueError, match=message):
        open_images(tmp_path / "in", labels=labels)


def test_what_is_no_set_of_images_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        open_images(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"no sub-folders.*--labels FILE"):
        open_images(tmp_path)
    (tmp_path / "cat").mkdir()
    with pytest.raises(ValueError, match="has no image"):
        open_images(tmp_path)
    with pytest.raises(ValueError, match="split does not apply"):
        open_images(tmp_path, split="test")


@pytest.mark.parametrize("content", [b"no image", png(0)[:200], b""])
def test_a_corrupt_image_is_named(tmp_path, content):
    put(tmp_path / "cat" / "bad.png", content)
    (item,) = open_images(tmp_path).items()
    with pytest.raises(ValueError, match=r"^cat/bad\.png: cannot be read") as caught:
        picture(item)
    assert "\n" not in str(caught.value)


def test_grey_and_transparent_images_become_rgb():
    for mode in ("L", "RGBA", "1"):
        file = io.BytesIO()
        Image.fromarray(pixels(0)).convert(mode).save(file, "PNG")
        assert picture(Item("x", 0, file.getvalue())).mode == "RGB"


# -- CIFAR ----------------------------------------------------------------------------


def record(labels, image):
    return bytes(labels) + image.transpose(2, 0, 1).tobytes()


@pytest.fixture
def cifar10(tmp_path):
    images = [pixels(seed, 32, 32) for seed in range(6)]
    for number in range(1, 6):
        put(tmp_path / f"data_batch_{number}.bin", record([number], images[number]))
    put(tmp_path / "test_batch.bin", record([7], images[0]) + record([0], images[1]))
    return tmp_path, images


def test_cifar_10_is_read_from_its_binary_files(cifar10):
    folder, images = cifar10
    test = open_images(folder)
    assert listed(test) == [("test_batch.bin:0", 7), ("test_batch.bin:1", 0)]
    np.testing.assert_array_equal(decoded(test), images[:2])
    train = open_images(folder, split="train")
    assert [label for _, label in listed(train)] == [1, 2, 3, 4, 5]
    assert train.count == 5
    np.testing.assert_array_equal(decoded(train), images[1:])


def test_cifar_100_has_its_fine_label_second(tmp_path):
    put(tmp_path / "test.bin", record([19, 99], pixels(3, 32, 32)))
    images = open_images(tmp_path)
    assert listed(images) == [("test.bin:0", 99)]
    np.testing.assert_array_equal(decoded(images)[0], pixels(3, 32, 32))


@pytest.mark.parametrize("names", [["test_batch", "data_batch_1"], ["meta", "test"]])
def test_the_pickled_version_of_cifar_is_refused_unread(tmp_path, names):
    for name in names:
        put(tmp_path / name, b"\x80\x04cos\nsystem\n.")
    with pytest.raises(ValueError, match=r"pickles are never opened.*\.bin"):
        open_images(tmp_path)


def test_damaged_cifar_is_named(cifar10):
    folder, images = cifar10
    path = folder / "test_batch.bin"
    put(path, path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="records of 3073 bytes; its size is 6145"):
        open_images(folder)
    put(path, record([3], images[0]) + record([10], images[1]))
    with pytest.raises(ValueError, match="record 1 has the class 10"):
        open_images(folder)
    with pytest.raises(ValueError, match="split must be 'test' or 'train'"):
        open_images(folder, split="validation")
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(ValueError, match=r"data_batch_3\.bin: cannot be read"):
        open_images(folder, split="train")


# -- webdataset and streams -----------------------------------------------------------


def write_tar(path, samples):
    with tarfile.open(path, "w") as archive:
        for key, fields in samples.items():
            for kind, content in fields.items():
                member = tarfile.TarInfo(f"{key}.{kind}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def sample(number):
    about = json.dumps({"label": number % 3}).encode()
    return {"png": png(number), "cls": str(number % 3).encode(), "json": about}


@pytest.fixture
def shards(tmp_path):
    for shard in range(2):
        write_tar(
            tmp_path / f"val-{shard}.tar",
            {f"val/s{n:03d}": sample(n) for n in range(3 * shard, 3 * shard + 3)},
        )
    return tmp_path


@pytest.mark.parametrize("where", ["", "*.tar"])
def test_webdataset_shards_are_read_in_order(shards, where):
    images = open_images(shards / where)
    names = [f"val-{n // 3}.tar:val/s{n:03d}.png" for n in range(6)]
    assert listed(images) == [(name, n % 3) for n, name in enumerate(names)]
    for seed, found in enumerate(decoded(images)):
        np.testing.assert_array_equal(found, pixels(seed))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"png": b"x"}, "class number"),
        ({"cls": b"1"}, "one image"),
        ({"png": b"x", "jpg": b"x", "cls": b"1"}, "one image"),
        ({"png": b"x", "cls": b"cat"}, "class number"),
    ],
)
def test_a_sample_without_image_or_class_is_named(tmp_path, fields, message):
    write_tar(tmp_path / "a.tar", {"k1": fields})
    with pytest.raises(ValueError, match=f"sample 'k1' must have .*{message}"):
        listed(open_images(tmp_path / "a.tar"))


def test_a_damaged_shard_is_named(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"not a tar file" * 100)
    with pytest.raises(ValueError, match=r"a\.tar: cannot be read"):
        listed(open_images(tmp_path / "a.tar"))


def test_a_stream_gives_what_its_shards_hold(shards, part, tmp_path):
    datasets = part("datasets")
    from calibrant.vision._images import images_of

    files = {"validation": sorted(map(str, shards.glob("*.tar")))}
    rows = datasets.load_dataset(
        "webdataset",
        data_files=files,
        split="validation",
        streaming=True,
        cache_dir=str(tmp_path / "cache"),
    )
    images = images_of(rows, "hf:x validation")
    assert listed(images) == [(f"hf:x validation:{n}", n % 3) for n in range(6)]
    np.testing.assert_array_equal(
        decoded(images), decoded(open_images(shards / "*.tar"))
    )


def test_a_stream_without_the_columns_says_what_it_has(part):
    datasets = part("datasets")
    from calibrant.vision._images import images_of

    rows = datasets.Dataset.from_dict({"image": ["a"], "caption": ["b"]})
    with pytest.raises(ValueError, match=r"one column named label.*'image', 'caption'"):
        images_of(rows.to_iterable_dataset(), "x")
