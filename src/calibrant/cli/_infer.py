"""``calibrant infer``: run a network over images, and keep its logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli import _flags as flags


@click.command()
@click.argument("model")
@click.option(
    "--images",
    required=True,
    metavar="WHERE",
    help="Folder, 'shards/*.tar', or hf:NAME on the Hugging Face hub.",
)
@flags.path_option("-o", "--out", required=True, help="Folder for the logits.")
@flags.path_option(
    "--labels",
    help="File of lines 'name,class', for a folder without a sub-folder per class.",
)
@click.option(
    "--classes",
    metavar="FILE",
    help="Class names, one per line, in the order of the outputs; or imagenet-1k.",
)
@click.option(
    "--split",
    help="Which part of the data. [default: test for CIFAR, validation for hf:NAME]",
)
@flags.path_option(
    "--checkpoint",
    help="Your weights (.pt, .safetensors). [default: published weights]",
)
@flags.valued("--batch-size", default=64, help="Images per batch.")
@flags.valued("--device", default="auto", help="cpu, cuda, cuda:1, …")
@flags.valued(
    "--dtype",
    type=click.Choice(["float16", "float32"]),
    default="float32",
    help="Type of the stored logits.",
)
@flags.valued("--shard-rows", default=5000, help="Images per output file.")
@click.option("--limit", type=int, help="Use only this many images, the first ones.")
@flags.valued("--workers", default=2, help="Threads that decode images.")
@click.option("--force", is_flag=True, help="Start over in a folder of other logits.")
@flags.quiet
@flags.clean_errors
def infer(
    model: str,
    images: str,
    labels: Path | None,
    classes: str | None,
    split: str | None,
    checkpoint: Path | None,
    device: str,
    *,
    quiet: bool,
    **options: Any,
) -> None:
    """Run a MODEL on labelled images and write its logits.

    MODEL is any timm model name, or a CIFAR network such as cifar10_resnet32. The same
    command, given again, continues a run that was stopped.

    \b
    Example:
      calibrant infer resnet50.a1_in1k --images val --out logits
      calibrant infer vit_base_patch16_224 --images hf:timm/imagenet-1k-wds --out logits
      calibrant infer cifar10_resnet32 --images cifar-10-batches-bin --out logits
      calibrant infer test_vit --checkpoint weights.safetensors --images val --out logits
      calibrant report logits
    """
    from calibrant.vision._images import open_images, read_classes
    from calibrant.vision._inference import infer as run
    from calibrant.vision._models import load_model

    known = None if classes is None else read_classes(classes)
    found = open_images(images, labels=labels, split=split, classes=known)
    with flags.steps(f"load {model}", quiet=quiet) as progress:

        def report(rows: int, of: int | None) -> None:
            share, total = (rows / of, f" of {of:,}") if of else (0.0, "")
            progress(share, f"{model}: {rows:,}{total} images")

        network = load_model(model, checkpoint=checkpoint, device=device)
        done = run(network, found, progress=report, **options)
    if not quiet:
        _say(done)


def _say(done: Any) -> None:
    for file in done.redone:
        click.echo(f"{file} was damaged or missing, and was computed again", err=True)
    manifest = done.manifest
    click.echo(
        f"{done.folder}: {manifest.rows:,} images in {len(manifest.shards)} files; next: "
        f"calibrant report {done.folder}"
    )
