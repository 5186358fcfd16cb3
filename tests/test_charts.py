"""Charts: what is drawn follows from the table, and travels through every place that shows it."""

import json
import struct
import subprocess
import sys
import zlib

import altair as alt
import numpy as np
import pandas as pd
import pytest
import vl_convert
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import charts
from lib.paths import DATA

CURVES = pd.DataFrame(
    [
        {"condition": condition, "model": "m", "metric": metric, "side": side, "cutoff": cutoff, "value": value}
        for condition, value in (("Simple", 0.9), ("Across <b>", 0.6))
        for metric in ("MW", "EW")
        for side, cutoff in (("top", 0.1), ("top", 1.0), ("bottom", 0.01), ("bottom", 0.5))
    ]
).assign(low=0.5, high=0.95, tse=0.8)
SCORES = pd.DataFrame(
    {"condition": ["a", "b", "c"], "value": [0.5, 0.9, np.nan], "low": [0.4, 0.8, np.nan], "high": [0.6, 1, np.nan]}
)
MARGINS = pd.DataFrame({"condition": ["a"] * 4 + ["b"], "margin": [-1.0, 0.0, 0.5, 2.0, -np.inf]})
NUMBERS = pd.DataFrame(
    {"number": ["singular", "plural"], "attractor": ["mismatch", "match"], "value": 0.7, "low": 0.6, "high": 0.8}
)
VERBS = pd.DataFrame({"verb": ["is", "has", "zzz"], "probability": [0.1, 0.001, 0.0], "share_right": [1.0, 0.5, 0.0]})
MODELS = pd.DataFrame(
    {"diagnostic": ["TSE", "TSE", "EW"], "model": ["m", "n", "m"], "value": 0.7, "low": 0.6, "high": 0.8}
)
ALL = {
    charts.cutoff_curves: CURVES,
    charts.intervals: SCORES,
    charts.margins: MARGINS,
    charts.by_number_and_attractor: NUMBERS,
    charts.verbs: VERBS,
    charts.compare: MODELS,
}


@pytest.fixture(autouse=True)
def theme():
    charts.use_theme()


def rows(chart: alt.TopLevelMixin) -> list[dict]:
    """Every row of data that travels with a chart."""
    return [row for table in chart.to_dict()["datasets"].values() for row in table]


def drawing(chart: alt.TopLevelMixin) -> str:
    return vl_convert.vegalite_to_svg({**chart.to_dict(), "$schema": charts.SCHEMA}, vl_version=charts.VEGA_LITE)


@pytest.mark.parametrize("function", ALL)
def test_a_chart_draws_and_says_in_words_what_it_shows(function):
    chart = function(ALL[function])
    assert "<path" in drawing(chart)
    assert len(chart.to_dict()["description"]) > 30
    assert function(ALL[function], description="In my words.").to_dict()["description"] == "In my words."


@pytest.mark.parametrize("function", ALL)
def test_a_table_without_rows_gives_a_chart_without_marks(function):
    json.dumps(function(ALL[function].iloc[:0]).to_dict(), allow_nan=False)


@pytest.mark.parametrize("function", ALL)
def test_the_three_types_of_an_output(function):
    chart = function(ALL[function])
    bundle, metadata = chart._repr_mimebundle_()
    assert set(bundle) == {"application/vnd.vegalite.v5+json", "image/png", "text/plain"}
    assert bundle[charts.MIME_TYPE]["$schema"] == "https://vega.github.io/schema/vega-lite/v5.json"
    json.dumps(bundle[charts.MIME_TYPE], allow_nan=False)
    assert bundle["text/plain"] == chart.to_dict()["description"]
    width, height = struct.unpack(">II", bundle["image/png"][16:24])
    shown = metadata["image/png"]
    assert (round(width / 1.25), round(height / 1.25)) == (shown["width"], shown["height"])


def test_packing_a_picture_changes_no_pixel():
    png = vl_convert.vegalite_to_png(charts.intervals(SCORES).to_dict(), vl_version=charts.VEGA_LITE)
    packed = charts._smaller(png)
    assert len(packed) < len(png)

    def pixels(data: bytes) -> bytes:
        position, found = 8, b""
        while position < len(data):
            (length,) = struct.unpack(">I", data[position : position + 4])
            kind, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
            assert (
                zlib.crc32(kind + body) == struct.unpack(">I", data[position + 8 + length : position + 12 + length])[0]
            )
            found += body if kind == b"IDAT" else b""
            position += length + 12
        return zlib.decompress(found)

    assert pixels(packed) == pixels(png)


def test_in_a_plain_script_nothing_is_drawn():
    code = (
        "import vl_convert; vl_convert.vegalite_to_png = None\n"
        "import pandas as pd\nfrom IPython.display import display\nfrom lib import charts\ncharts.use_theme()\n"
        "table = pd.DataFrame({'condition': ['a'], 'value': [.5], 'low': [.4], 'high': [.6]})\n"
        "chart = charts.intervals(table)\nchart\ndisplay(chart)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "LayerChart" in done.stdout


# ---- colours


@given(st.sets(st.text(min_size=1), min_size=1, max_size=30), st.data())
def test_a_model_looks_the_same_in_any_company(models: set[str], data: st.DataObject):
    some = data.draw(st.sets(st.sampled_from(sorted(models))))
    for looks in (charts.model_colours, charts.model_shapes):
        assert looks(some).items() <= looks(models).items()
        assert set(looks(models)) == models
    assert set(charts.model_colours(models).values()) <= set(charts.PALETTE)


def test_no_two_listed_models_look_the_same_and_the_first_have_a_colour_of_their_own():
    listed = [*pd.read_csv(DATA / "models.csv")["name"], *charts.BUNDLED_MODELS]
    colours, shapes = charts.model_colours(listed), charts.model_shapes(listed)
    assert len({(colours[name], shapes[name]) for name in listed}) == len(set(listed))
    assert [colours[name] for name in charts.BUNDLED_MODELS] == list(charts.PALETTE[:3])
    strangers = charts.model_shapes(["org/name", "my/folder", "another"])
    assert "circle" not in strangers.values()  # never the look of a bundled model


def test_a_look_depends_on_nothing_but_the_name():
    """Worked out in another process, whose hashes are salted differently."""
    code = "from lib import charts; print(charts.model_colours(['org/name']), charts.model_shapes(['org/name']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{charts.model_colours(['org/name'])} {charts.model_shapes(['org/name'])}"


def luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour, as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", ["#ffffff", "#16191d"])
def test_every_colour_stands_out_from_a_light_and_a_dark_page(ground: str):
    for colour in (*charts.PALETTE, charts.GREY):
        lighter, darker = sorted((luminance(colour), luminance(ground)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) > 2, colour


# ---- one by one


def test_cutoffs_are_solid_from_the_top_dashed_from_the_bottom_on_a_logarithmic_axis():
    chart = charts.cutoff_curves(CURVES).to_dict()
    line = next(layer["encoding"] for layer in chart["spec"]["layer"] if layer["mark"]["type"] == "line")
    assert line["strokeDash"]["scale"] == {"domain": ["top", "bottom"], "range": [[1, 0], [5, 3]]}
    assert line["x"]["scale"]["type"] == "log"
    assert line["color"]["scale"]["domain"] == ["EW", "MW", "TSE"]
    assert chart["facet"]["sort"] == ["Simple", "Across <b>"]


def test_cutoffs_of_several_models_stand_in_columns_and_no_tse_draws_no_level():
    table = pd.concat([CURVES, CURVES.assign(model="n")]).drop(columns="tse")
    chart = charts.cutoff_curves(table, value_title="mass counted").to_dict()
    assert chart["facet"]["column"]["sort"] == ["m", "n"]
    assert [layer["mark"]["type"] for layer in chart["spec"]["layer"]] == ["area", "line", "point"]
    assert "2 models" in chart["description"]


def test_a_cutoff_without_a_score_is_left_out():
    table = CURVES.assign(value=CURVES["value"].where(CURVES["cutoff"] != 0.01))
    assert {row["cutoff"] for row in rows(charts.cutoff_curves(table))} == {0.1, 0.5, 1.0}


def test_intervals_stand_best_first_and_published_values_beside():
    plain = charts.intervals(SCORES, chance=None).to_dict()
    assert plain["layer"][0]["encoding"]["y"]["sort"][:2] == ["b", "a"]
    assert [layer["mark"]["type"] for layer in plain["layer"]] == ["rule", "point"]
    beside = charts.intervals(SCORES.assign(published=[0.55, 0.95, np.nan])).to_dict()
    marks = [layer["mark"] for layer in beside["layer"]]
    assert {"type": "point", "shape": "diamond", "filled": False}.items() <= marks[-1].items()
    assert "published" in beside["title"]
    assert "Highest on average: b, 0.90; lowest: a, 0.50." in beside["description"]


def test_each_metric_keeps_its_colour():
    table = pd.concat([SCORES.assign(metric="MW"), SCORES.assign(metric="TSE"), SCORES.assign(metric="other")])
    scale = charts.intervals(table).to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"domain": ["MW", "TSE", "other"], "range": [charts.VERMILLION, charts.GREY, charts.GREEN]}


def test_margins_are_counted_in_bins_with_zero_as_an_edge_and_a_tie_among_the_wrong():
    drawn = rows(charts.margins(MARGINS))
    assert {row["condition"] for row in drawn} == {"a"}  # minus infinity cannot be drawn
    assert all(row["start"] < row["end"] and not row["start"] < 0 < row["end"] for row in drawn)
    assert sum(row["items"] for row in drawn if row["form"] == "wrong") == 2
    assert sum(row["items"] for row in drawn if row["form"] == "right") == 2
    assert sum(row["share"] for row in drawn) == pytest.approx(1)
    assert {row["median"] for row in drawn} == {0.25}
    assert "a median 0.25, 50% over zero" in charts.margins(MARGINS).to_dict()["description"]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_every_margin_is_in_exactly_one_bin(values: list[float]):
    table = pd.DataFrame({"condition": "a", "margin": values})
    drawn = rows(charts.margins(table))
    kept = [round(value, 4) for value in values]
    assert sum(row["items"] for row in drawn) == len(values)
    assert sum(row["items"] for row in drawn if row["form"] == "right") == sum(value > 0 for value in kept)


def test_thousands_of_margins_travel_as_counts():
    table = pd.DataFrame({"condition": np.repeat(list("abcdefghi"), 5000), "margin": np.linspace(-9, 12, 45000)})
    assert len(json.dumps(charts.margins(table).to_dict())) < 60_000


def test_attractors_stand_in_a_known_order_and_each_condition_has_its_panel():
    chart = charts.by_number_and_attractor(NUMBERS).to_dict()
    assert chart["layer"][0]["encoding"]["x"]["sort"] == ["match", "mismatch"]
    several = pd.concat([NUMBERS.assign(condition="b"), NUMBERS.assign(condition="a")])
    assert charts.by_number_and_attractor(several).to_dict()["facet"]["sort"] == ["b", "a"]


def test_a_verb_of_probability_zero_cannot_stand_on_a_logarithmic_axis():
    assert {row.get("verb") for row in rows(charts.verbs(VERBS))} == {"is", "has", None}


def test_of_many_verbs_some_are_drawn_and_the_line_uses_all():
    count = 2400
    table = pd.DataFrame({"verb": [f"v{n}" for n in range(count)], "probability": np.geomspace(1e-9, 0.1, count)})
    chart = charts.verbs(table.assign(share_right=np.linspace(0, 1, count)))
    drawn = rows(chart)
    points, means = [row for row in drawn if "verb" in row], [row for row in drawn if "verbs" in row]
    assert (len(points), points[0]["verb"], points[-1]["verb"]) == (1000, "v0", "v2399")
    assert [row["verbs"] for row in means] == [200] * 12
    assert means[0]["share_right"] == pytest.approx(99.5 / 2399, abs=1e-4)
    assert "1,000 of 2,400 verbs" in " ".join(chart.to_dict()["title"])


def test_a_verb_list_has_a_frequency_axis_too():
    chart = charts.verbs(VERBS.rename(columns={"probability": "frequency"}), by="frequency", by_title="frequency")
    assert chart.to_dict()["layer"][0]["encoding"]["x"]["field"] == "frequency"


def test_compared_models_have_their_own_colours():
    table = MODELS.assign(model=["smollm2-135m-instruct", "gpt2", "smollm2-135m-instruct"])
    scale = charts.compare(table).to_dict()["spec"]["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == charts.model_colours(table["model"])
    assert "shape" in charts.compare(table).to_dict()["spec"]["layer"][1]["encoding"]


def test_a_tooltip_names_a_column_in_plain_words():
    table = pd.DataFrame({"item": ["1"], "cloze_difference": [0.2], "margin": [0.1], "context": ["a"]})
    tooltips = json.dumps(charts.differences(table).to_dict())
    assert '"title": "cloze difference"' in tooltips


# ---- the pictures of single sentences and of the psycholinguistic diagnostics


def drawn(chart) -> dict:
    """The specification, after the renderer has drawn it once."""
    assert vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=charts.VEGA_LITE).startswith("<svg")
    return chart.to_dict()


def test_words_and_surprisal_say_what_they_show():
    chart = charts.words(pd.DataFrame({"word": ["are", "were"], "probability": [0.25, 0.125]}))
    assert drawn(chart)["description"] == "Bars of probabilities: are 0.250, were 0.125."
    table = pd.DataFrame(
        {"sentence": "Cats sleep.", "position": [0, 1], "word": ["Cats", "sleep"], "bits": [np.nan, 3.5]}
    )
    assert "sleep 3.5" in drawn(charts.surprisal(table))["description"]


def test_means_leave_out_what_a_logarithmic_axis_cannot_show():
    table = pd.DataFrame({"condition": ["expected", "within", "between"], "constraint": ["H", "H", "L"],
                          "value": [0.1, 0.01, 0.0], "low": [0.05, 0.0, 0.0], "high": [0.2, 0.02, 0.0]})  # fmt: skip
    found = drawn(charts.means(table, "constraint"))
    [rows] = found["datasets"].values()
    assert [row["condition"] for row in rows] == ["expected", "within"]
    assert rows[1]["low"] is None


def test_paired_lines_leave_out_items_without_a_value_and_count_the_rest():
    table = pd.DataFrame({
        "condition": "simple", "item": ["0", "0", "1", "1", "2"], "context": "A robin is",
        "value": [2.0, -1.0, 3.0, 1.0, np.nan],
        "polarity": ["affirmative", "negative", "affirmative", "negative", "affirmative"],
    })  # fmt: skip
    found = drawn(charts.paired(table))
    assert "simple, affirmative: 100% right. simple, negative: 50% right." in found["description"]
    [rows] = found["datasets"].values()
    assert [row["right"] for row in rows] == ["right", "wrong", "right", "right"]


def test_differences_count_the_items_over_zero():
    table = pd.DataFrame({"item": ["1", "2", "3"], "cloze_difference": [0.2, 0.4, np.nan], "margin": [0.01, -0.02, 0.3],
                          "context": "which swimmer the lifeguard had"})  # fmt: skip
    assert (
        drawn(charts.differences(table))["description"]
        == "Scatter plot of 2 items; in 1 the model's difference is over zero."
    )


def test_two_margins_colours_pairs_that_are_judged_differently():
    """By hand: both right, both wrong, right and wrong, a tie (counts as wrong) against right; NaN is left out."""
    table = pd.DataFrame(
        {"condition": "a", "item": list("vwxyz"), "sentence": "s", "x": [1, -1, 2, 0, np.nan], "y": [1, -2, -1, 0.5, 1]}
    )
    chart = charts.two_margins(table)
    assert [(row["item"], row["judgement"]) for row in rows(chart)] == [
        ("v", "the same"), ("w", "the same"), ("x", "different"), ("y", "different"),
    ]  # fmt: skip
    assert "a: 50% of the pairs judged differently." in chart.to_dict()["description"]
    assert charts.VERMILLION in drawing(chart)


def test_training_curves_have_a_line_a_series_and_levels_to_compare_with():
    table = pd.DataFrame({"step": [1, 2, 1, 2], "series": ["a", "a", "b", "b"], "value": [3.0, 2.0, 4.0, 2.5]})
    chart = charts.training_curves(table, "loss", {"trigram": 3.5})
    description = chart.to_dict()["description"]
    assert description == "Line chart of loss by training step. a: from 3 to 2. b: from 4 to 2.5. trigram: 3.5."
    assert "trigram" in drawing(chart) and charts.BLUE in drawing(chart) and charts.VERMILLION in drawing(chart)
    assert charts.training_curves(table, "loss", description="Mine.").to_dict()["description"] == "Mine."
    assert "<path" in drawing(charts.training_curves(table, "loss"))


EVERY_KIND = """
import pandas as pd
from lib import charts
hostile = [chr(i) for i in (*range(32), 127, 133, 0xAD, 0x200E, 0x2028, 0x202E, 0xFEFF, 0xFFFE, 0xFFFF, 0x1F600)]
chart = charts.words(pd.DataFrame({"word": [f"a{character}b<script>" for character in hostile], "probability": 0.5}))
bundle, _ = charts._render({**chart.to_dict(), "title": "".join(hostile) + chr(0xD83D)})
print(bundle["image/png"][:4], len(str(bundle["application/vnd.vegalite.v5+json"])) > 1000)
"""


def test_no_character_in_a_text_ends_the_process():
    """Control characters cannot stand in SVG, and the program that draws pictures takes the kernel with it."""
    done = subprocess.run([sys.executable, "-c", EVERY_KIND], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "b'\\x89PNG' True\n"), done.stderr[-500:]
