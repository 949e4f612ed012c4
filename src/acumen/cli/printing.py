"""What commands print: the terminal page, or JSON."""

from __future__ import annotations

import json
from pathlib import Path

import click

from acumen.comparison import Comparison


def print_models(
    models: Comparison,
    *,
    as_json: bool,
    quiet: bool,
    written: Path | None = None,
    more: str = "",
) -> None:
    """Print a comparison, its groups, and where a report was written."""
    if as_json:
        findings = [finding.to_dict() for finding in models.audit()]
        click.echo(json.dumps({**models.to_dict(), "findings": findings}))
        return
    if quiet:
        return
    from acumen.report import groups_of
    from acumen.terminal import show

    show(models)
    for group, of_group in groups_of(models).items():
        click.echo(f"\ngroup {group}: {of_group[0].n:,.10g} rows")
        click.echo(Comparison(tuple(of_group)).table("text", footnotes=False))
    for text in (more, "" if written is None else f"report: {written}"):
        if text:
            click.echo(f"\n{text}")
