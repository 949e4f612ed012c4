"""Numbers beside the headline on a real network, as docs/method.md quotes them."""

from pathlib import Path

import calibrant as cal

PAGE = " ".join(
    (Path(__file__).parent.parent / "docs" / "method.md").read_text("utf-8").split()
)


def test_the_page_quotes_what_is_found(data):
    rows = data("cifar10_akamaster_resnet32")
    y, z = rows["labels"], rows["logits"]
    found = cal.calibration_bracket(y, logits=z)
    ends = found.lower, found.debiased, found.plugin
    assert " < ".join(f"{100 * end:.3f}" for end in ends) in PAGE
    assert f"{100 * found.second_opinion:.3f} by bins" in PAGE
    choice = cal.choose_bandwidth(y, logits=z)
    flat = f"{choice.flat_from:.3f} to {choice.flat_to:.3f}"
    assert f"the best is {choice.bandwidth:.3f}, and {flat} do as well" in PAGE
    whole = cal.canonical_calibration_error(y, logits=z).calibration
    quoted = f"{100 * whole:.2f} against {100 * found.debiased:.2f}"
    assert quoted in PAGE


def test_the_page_quotes_the_bandwidths_of_an_under_confident_network(data):
    rows = data("cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT")
    kind = {key: rows[key] for key in ("logits", "probs") if key in rows}
    choice = cal.choose_bandwidth(rows["labels"], **kind)
    assert f"needs {choice.flat_from:.2f} to {choice.flat_to:.2f}" in PAGE
