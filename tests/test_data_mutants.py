"""Wrong versions of reading and sharding data, each killed by a law that the right version keeps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "images"), str(HERE / "sources"), str(HERE / "audio")]

import test_archive  # noqa: E402
import test_audio_decoding  # noqa: E402
import test_folder  # noqa: E402
import test_formats  # noqa: E402
import test_images  # noqa: E402
import test_manifest  # noqa: E402
import test_sharding  # noqa: E402
import test_tiff  # noqa: E402
import test_webdataset_shards  # noqa: E402
import test_zips  # noqa: E402
from mutants import Mutant, Wrong, applied, broken_in  # noqa: E402

Law = Callable[[Path], object]


def turned(_: Path) -> None:
    for orientation in (3, 6, 8):
        test_formats.test_every_file_is_decoded_as_pillow_does(f"JPEG turned {orientation}")


def copies(folder: Path) -> None:
    for seed in range(8):
        place = folder / str(seed)
        place.mkdir(parents=True)
        test_sharding.test_exact_copies_are_on_one_side_and_told(place, seed)


def groups(folder: Path) -> None:
    for seed in range(3):
        place = folder / str(seed)
        place.mkdir(parents=True)
        test_sharding.test_a_group_is_never_on_both_sides_and_stays_as_a_column(place, seed)


def predictors(_: Path) -> None:
    for order in "<>":
        for dtype, predictor in (("u2", 2), ("f4", 3)):
            test_tiff.test_predictors_and_big_files_come_back(order, False, dtype, predictor)


def strict(folder: Path) -> None:
    test_sharding.test_strictness_and_the_budget_name_the_first_files_and_pass_over_hidden_ones(
        folder, {"strict": True}, "2 of 42 files refused, and ledger.strict allows none: a/bad0.png"
    )


def streamed(_: Path) -> None:
    test_audio_decoding.test_a_streamed_file_has_all_that_follows_its_header("PCM_16", 0xFFFFFFFF, 0xFFFFFFFF)


IMAGES, SOURCES = "pipeline.images.", "pipeline.sources."
WRONG = (
    Wrong(
        "sixteen bits lose their low byte instead of being scaled",
        IMAGES + "decoding",
        "((wide * 255 + 32767) // 65535)",
        "(wide >> 8)",
        lambda _: test_images.test_sixteen_bit_grey_is_scaled_and_not_clipped(),
    ),
    Wrong(
        "a declared range is cut instead of rounded",
        IMAGES + "decoding",
        "np.clip(np.rint(numbers), 0, 255)",
        "np.clip(numbers, 0, 255)",
        lambda _: test_tiff.test_wide_values_are_scaled_by_the_declared_range_and_refused_without_one(),
    ),
    Wrong(
        "bands are taken for opacity",
        IMAGES + "canvas",
        "channels in (2, 4) and not found.alpha",
        "channels in (2, 4) and False",
        lambda _: test_tiff.test_bands_are_never_taken_for_opacity_nor_dropped(),
    ),
    Wrong("EXIF is not read where it is there", IMAGES + "decoding", "METADATA.isdisjoint(info)", "True", turned),
    Wrong(
        "differences are summed in the wrong byte order",
        IMAGES + "tiff",
        "dtype.newbyteorder(page.order)",
        'dtype.newbyteorder("<")',
        predictors,
    ),
    Wrong(
        "floats are joined least byte first",
        IMAGES + "tiff",
        'dtype.newbyteorder(">")',
        'dtype.newbyteorder("<")',
        predictors,
    ),
    Wrong(
        "planes are read as if bands lay together",
        IMAGES + "tiff",
        "(1, samples) if apart",
        "(samples, 1) if apart",
        lambda _: test_tiff.test_every_layout_comes_back_value_by_value({"apart": True}, "<", 1, "u1"),
    ),
    Wrong(
        "hidden folders are classes",
        SOURCES + "names",
        'part.startswith(".") or',
        "False or",
        lambda folder: test_folder.test_hidden_and_system_files_are_no_classes(folder, ".git/x.png"),
    ),
    Wrong(
        "keys end at the first dot",
        SOURCES + "webdataset",
        'last.rpartition(".")',
        'last.partition(".")',
        lambda _: test_webdataset_shards.test_names_split_at_the_last_dot(),
    ),
    Wrong(
        "names are compared byte by byte",
        SOURCES + "manifest",
        'name = unicodedata.normalize("NFC", name)',
        "name = str(name)",
        lambda folder: test_manifest.test_names_are_met_in_any_unicode_form_and_spelling(folder, "NFD", ""),
    ),
    Wrong(
        "the first of two rows is believed",
        SOURCES + "manifest",
        "if (before.labels, before.split) != (row.labels, row.split):",
        "if False:",
        test_manifest.test_two_rows_of_one_file_must_agree,
    ),
    Wrong(
        "a cut tar ends in silence",
        SOURCES + "archive",
        "if stream.tell() <= tar.offset and not stream.read(1):",
        "if False:",
        test_archive.test_an_archive_cut_at_any_byte_keeps_the_whole_members_and_says_so,
    ),
    Wrong(
        "a zip without its directory is lost as a whole",
        SOURCES + "zips",
        "yield from _without_directory(path, str(error))",
        "yield from ()",
        lambda folder: test_zips.test_a_zip_cut_anywhere_keeps_the_whole_members_and_says_so(folder, 8),
    ),
    Wrong("copies go to both sides", "pipeline.repeats", "for part in least[inverse]", "for part in parts", copies),
    Wrong(
        "the copy in train is kept instead of that in test",
        "pipeline.repeats",
        'splits[row] != "test"',
        'splits[row] == "test"',
        test_sharding.test_copies_on_both_sides_are_told_taken_away_or_refused,
    ),
    Wrong(
        "a group is split by its names",
        "pipeline.sharding",
        "row.name if place is None else",
        "row.name if True else",
        groups,
    ),
    Wrong(
        "what had to be changed is stored as it came",
        IMAGES + "canvas",
        "if found.plain and not array:",
        "if not array:",
        test_sharding.test_bytes_are_kept_where_any_reader_sees_the_same_and_stored_without_loss_elsewhere,
    ),
    Wrong("a streamed size is believed", "pipeline.audio.riff", "declared >= STREAMED or", "False or", streamed),
    Wrong(
        "a cut WAV is read as far as it goes",
        "pipeline.audio.riff",
        "if not streamed and declared > there:",
        "if False:",
        lambda _: test_audio_decoding.test_a_file_that_is_cut_anywhere_is_refused("WAV", "PCM_16"),
    ),
    Wrong(
        "the MD5 of a FLAC is not looked at",
        "pipeline.audio.decoding",
        "if any(digest) and bits in (8, 16, 24):",
        "if False:",
        lambda _: test_audio_decoding.test_a_flac_whose_samples_are_not_those_of_its_header_is_refused("PCM_16"),
    ),
    Wrong(
        "another rate is taken for the clip's",
        "pipeline.audio.decoding",
        "if rate == wanted:",
        "if True:",
        lambda _: test_audio_decoding.test_another_rate_is_resampled_and_keeps_its_pitch(16_000),
    ),
    Wrong(
        "channels are read one behind the other",
        "pipeline.audio.riff",
        "reshape(-1, wave.channels)\n    values",
        "reshape(wave.channels, -1).T\n    values",
        lambda _: test_audio_decoding.test_channels_become_those_of_the_contract_by_its_rule(),
    ),
    Wrong("hidden files count against strictness", "pipeline.ledger", "if file.reason != HIDDEN", "if True", strict),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_law_kills_what_the_right_version_passes(tmp_path: Path, wrong: Wrong) -> None:
    assert not broken_in(tmp_path / "right", wrong.law)
    with applied(Mutant(wrong.name, "data", wrong.module, wrong.old, wrong.new)):
        assert broken_in(tmp_path / "wrong", wrong.law), f"survived: {wrong.name}"
