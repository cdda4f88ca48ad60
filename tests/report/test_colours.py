"""Colours that colour-blind people can tell apart, and that stand out from the page."""

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

STYLE = files("fairmatch.report").joinpath("assets", "style.css").read_text("utf-8")
BLOCKS = re.findall(r":root \{(.*?)\}", STYLE, re.S)
SCHEMES = {
    name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
    for name, block in zip(("light", "dark", "print"), BLOCKS, strict=True)
}

# Machado, Oliveira and Fernandes (2009), severity 1, on linear light.
BLIND = {
    "nobody": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]),
}  # fmt: skip


def linear(colour):
    text = colour.removeprefix("#")
    text = "".join(2 * sign for sign in text) if len(text) == 3 else text
    value = np.array([int(text[k : k + 2], 16) for k in (0, 2, 4)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(light):
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = to_xyz @ np.clip(light, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = [t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("eyes", BLIND)
def test_no_two_colours_of_a_chart_look_alike(scheme, eyes):
    colours = SCHEMES[scheme]
    seen = {name: lab(BLIND[eyes] @ linear(colours[name])) for name in colours}
    charts = [
        [f"group-{k}" for k in (1, 2)],
        [f"series-{k}" for k in range(1, 6)],
    ]
    for names in charts:
        for one, other in combinations(names, 2):
            # About ten just noticeable differences.
            assert np.linalg.norm(seen[one] - seen[other]) > 10, (one, other)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_colour_of_a_chart_stands_out_from_the_page(scheme):
    colours = SCHEMES[scheme]
    weights = np.array([0.2126, 0.7152, 0.0722])
    ground = weights @ linear(colours["card"])
    for name in ("group-1", "group-2", *(f"series-{k}" for k in range(1, 6))):
        low, high = sorted((ground, weights @ linear(colours[name])))
        assert (high + 0.05) / (low + 0.05) >= 3.0, name  # WCAG 2.1, 1.4.11
