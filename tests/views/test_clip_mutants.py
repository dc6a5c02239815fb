"""Wrong versions of the invariances of sound and of series, each killed by a law or by a reference of the right one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from mutants import Mutant, Wrong, applied, broken

sys.path.insert(0, str(Path(__file__).parent))

import clip_laws as laws
import test_clips_against_references as references

VIEWS = "pipeline.views."


def in_pieces() -> None:
    with pytest.MonkeyPatch.context() as patch:
        references.test_pieces_that_fit_the_cache_leave_no_trace(patch)


WRONG = (
    Wrong(
        "a shift goes the other way",
        VIEWS + "audio_time",
        "return cut(clips, -samples, count)",
        "return cut(clips, samples, count)",
        references.test_a_time_shift_is_that_of_scipy,
    ),
    Wrong(
        "what goes out comes in",
        VIEWS + "audio_time",
        "    if wrap:",
        "    if True:",
        references.test_a_time_shift_is_that_of_scipy,
    ),
    Wrong(
        "the last place of a mask is never taken",
        VIEWS + "audio_time",
        "room = clips.shape[-1] - length + 1",
        "room = clips.shape[-1] - length",
        references.test_time_masks_lie_anywhere_in_the_clip_and_are_as_long_as_drawn,
    ),
    Wrong(
        "a gain in dB is of power",
        VIEWS + "audio_level",
        "(math.log(10.0) / 20.0)",
        "(math.log(10.0) / 10.0)",
        references.test_gain_polarity_and_reversal_are_those_of_numpy,
    ),
    Wrong(
        "the level of noise is that of the batch",
        VIEWS + "audio_noise",
        "torch.linalg.vector_norm(each, dim=(1, 2), keepdim=True)",
        "torch.linalg.vector_norm(each, dim=(0, 1, 2), keepdim=True)",
        lambda: laws.a_view_is_a_function_of_its_own_row(laws.AUDIO["noise_at_snr"]),
    ),
    Wrong(
        "a silent clip is divided by its level",
        VIEWS + "audio_noise",
        "wanted = signal * by_clip(",
        "wanted = 1.0 / signal * by_clip(",
        lambda: laws.shape_type_and_finiteness_are_kept(laws.AUDIO["noise_at_snr"]),
    ),
    Wrong(
        "the exponent of noise is of its amplitude",
        VIEWS + "audio_noise",
        "by_clip(-0.5 * exponent, clips)",
        "by_clip(-exponent, clips)",
        references.test_white_noise_is_normal_and_flat_and_other_noise_falls_as_its_exponent,
    ),
    Wrong(
        "the ends of a spectrum are as strong as all else",
        VIEWS + "audio_rows",
        "math.sqrt(2.0) * made[..., end].real",
        "made[..., end].real",
        lambda: references.test_noise_that_is_made_as_its_spectrum_is_white(6),
    ),
    Wrong(
        "a sound underneath is another clip's",
        VIEWS + "audio_background",
        "values[rows[some]]",
        "values[some]",
        lambda: laws.a_view_is_a_function_of_its_own_row(
            laws.AUDIO["background"].model_copy(update={"probability": 0.5})
        ),
    ),
    Wrong(
        "all clips have the same noise",
        VIEWS + "audio_rows",
        'return torch.from_numpy(keys.bits("word").view(np.int64))',
        'return torch.from_numpy(keys.bits("word").view(np.int64)) * 0',
        lambda: laws.parameters_of_two_views_are_independent(laws.SERIES["channel_shuffle"]),
    ),
    Wrong(
        "rows that act are taken from the top",
        VIEWS + "audio_rows",
        "part = clips if whole else clips.index_select(0, where)",
        "part = clips[: len(rows)]",
        lambda: laws.a_view_is_a_function_of_its_own_row(laws.AUDIO["polarity"]),
    ),
    Wrong(
        "places outside are those of the other end",
        VIEWS + "audio_rows",
        "padded = functional.pad(clips, (before, after)).contiguous()",
        'padded = functional.pad(clips, (before, after), mode="circular").contiguous()',
        references.test_a_time_shift_is_that_of_scipy,
    ),
    Wrong(
        "phases are not carried from frame to frame",
        VIEWS + "audio_vocoder",
        "        now.mul_(last)",
        "        now.mul_(1.0)",
        references.test_tempo_keeps_the_pitch_and_pitch_the_tempo,
    ),
    Wrong(
        "a tempo starts at the clip's start",
        VIEWS + "audio_tempo",
        '(lengths[::channels] - count).div(2, rounding_mode="floor")',
        "0 * lengths[::channels]",
        references.test_tempo_is_about_the_middle,
    ),
    Wrong(
        "a higher pitch is lower",
        VIEWS + "audio_tempo",
        "(math.log(2.0) / 12.0)",
        "(-math.log(2.0) / 12.0)",
        references.test_tempo_keeps_the_pitch_and_pitch_the_tempo,
    ),
    Wrong(
        "a pitch is that of a faster clip",
        VIEWS + "audio_tempo",
        "stretched(part.flatten(0, 1), 1.0 / ratio, size,",
        "stretched(part.flatten(0, 1), torch.ones_like(ratio), size,",
        references.test_tempo_keeps_the_pitch_and_pitch_the_tempo,
    ),
    Wrong(
        "pieces come back in the order of their speed",
        VIEWS + "audio_tempo",
        "made.index_copy_(0, rows, change",
        "made.index_copy_(0, rows.sort().values, change",
        in_pieces,
    ),
    Wrong(
        "places are read to the nearest sample",
        VIEWS + "audio_sinc",
        "ticks = (places * PHASES).round_().long()",
        "ticks = places.round().long() * PHASES",
        references.test_a_signal_is_read_between_its_samples_as_the_tone_that_it_is,
    ),
    Wrong(
        "a filter's ringing wraps around",
        VIEWS + "audio_filter",
        "length = fast_length(count + ringing)",
        "length = count",
        references.test_a_band_filter_is_scipys_butterworth,
    ),
    Wrong(
        "frequencies are not warped",
        VIEWS + "audio_filter",
        "below = (low.double() * (math.pi / rate)).tan()[:, None]",
        "below = (low.double() * (math.pi / rate))[:, None]",
        references.test_a_band_filter_is_scipys_butterworth,
    ),
    Wrong(
        "a band is masked without its first bin",
        VIEWS + "audio_filter",
        "(place >= low[..., None])",
        "(place > low[..., None] + rate / count)",
        references.test_a_frequency_mask_leaves_nothing_in_its_bands_and_all_else_as_it_was,
    ),
    Wrong(
        "a room's time is that to a decay of 30 dB",
        VIEWS + "audio_room",
        "fall = DECAY / (seconds.double() * rate)",
        "fall = 0.5 * DECAY / (seconds.double() * rate)",
        references.test_a_response_decays_as_its_time_says_and_lies_below_the_direct_sound_as_drawn,
    ),
    Wrong(
        "the end of a room comes in at the start",
        VIEWS + "audio_room",
        "length = fast_length(count + response.shape[-1] - 1)",
        "length = count",
        references.test_a_room_is_a_convolution_with_its_response,
    ),
    Wrong(
        "tones above half the rate come back below it",
        VIEWS + "audio_background",
        "loud * (multiples < rate / 2)",
        "loud",
        references.test_hum_is_tones_at_multiples_of_the_mains,
    ),
    Wrong(
        "a slice begins at the start",
        VIEWS + "series_time",
        "start = place[rows, None] * (steps - 1 - span)",
        "start = 0.0 * span",
        references.test_a_slice_and_a_stretch_are_numpys_interpolation,
    ),
    Wrong(
        "parts are put where they went instead of taken from where they are",
        VIEWS + "series_order",
        "starts[order].gather(1, slot)",
        "starts[order.argsort(1)].gather(1, slot)",
        lambda: references.test_parts_are_numpys_array_split_in_another_order(12),
    ),
    Wrong(
        "jitter does not know the channel's unit",
        VIEWS + "series_change",
        "spread = part.std(-1, correction=0, keepdim=True)",
        "spread = part.std((1, 2), correction=0, keepdim=True)",
        references.test_jitter_is_normal_and_in_proportion_to_each_channels_spread,
    ),
    Wrong(
        "factors are uniform and not ratios",
        VIEWS + "series_change",
        "return (low + (high - low) * unit).exp()",
        "return math.exp(low) + (math.exp(high) - math.exp(low)) * unit",
        references.test_channels_are_scaled_dropped_and_moved_as_wholes,
    ),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_law_kills_what_the_right_version_passes(wrong: Wrong) -> None:
    assert not broken(wrong.law)
    with applied(Mutant(wrong.name, "clips", wrong.module, wrong.old, wrong.new)):
        assert broken(wrong.law), f"survived: {wrong.name}"
