"""Pictures: bytes to pixels (``decoding``, ``tiff``), and pixels to the canvas that a data set has (``canvas``)."""

from pipeline.images.canvas import Input, as_channels, fit_image, on_channels, read_image
from pipeline.images.decoding import (
    FORMATS,
    NUMPY,
    Decoded,
    Pixels,
    Range,
    decode,
    decode_array,
    encode_array,
    encode_png,
)
from pipeline.images.thumbnail import thumbnail
from pipeline.images.tiff import PIXEL_LIMIT
from pipeline.samples import Unreadable

__all__ = [
    "FORMATS",
    "NUMPY",
    "PIXEL_LIMIT",
    "Decoded",
    "Input",
    "Pixels",
    "Range",
    "Unreadable",
    "as_channels",
    "decode",
    "decode_array",
    "encode_array",
    "encode_png",
    "fit_image",
    "on_channels",
    "read_image",
    "thumbnail",
]
