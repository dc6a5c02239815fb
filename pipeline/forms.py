"""What a file is by its first bytes, in words: for those who expected something else of it."""

from __future__ import annotations

FORMS = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"II*\0": "a TIFF picture",
    b"MM\0*": "a TIFF picture",
    b"fLaC": "a FLAC sound",
    b"OggS": "an Ogg sound",
    b"RF64": "a WAV sound",
    b"ID3": "an MP3 sound",
    b"FORM": "an AIFF sound",
    b"\x30\x26\xb2\x75": "a WMA sound",
    b"\x93NUMPY": "an .npy array",
    b"PK\x03\x04": "a zip or .npz",
    b"PAR1": "a Parquet table",
    b"\x89HDF": "an HDF5 file",
    b"\x1f\x8b": "a gzip file",
    b"%PDF": "a PDF",
    b"\xff\xfe": "text in UTF-16",
    b"\xfe\xff": "text in UTF-16",
}
UNREAD = ("an MP3 sound", "an AIFF sound", "a WMA sound", "an MP4 or M4A file")
"""sounds that are not read, until they are converted"""


def form(content: bytes) -> str:
    """What bytes seem to be."""
    if content[:4] == b"RIFF":
        return {b"WAVE": "a WAV sound", b"WEBP": "a WebP picture"}.get(content[8:12], "a RIFF file")
    if content[4:8] == b"ftyp":
        return "an MP4 or M4A file"
    for start, name in FORMS.items():
        if content.startswith(start):
            return name
    if len(content) > 1 and content[0] == 0xFF and content[1] & 0xE6 in (0xE2, 0xE4, 0xE6):
        return "an MP3 sound"  # ISO/IEC 11172-3, 2.4.2.3: eleven set bits, then version and layer
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "of no known form"
    return "of no known form" if b"\0" in content else "text"


def unheard(content: bytes) -> str:
    """Why bytes are no sound that is read, with the remedy where there is one."""
    found = form(content)
    remedy = "; convert it to wav, flac or ogg" if found in UNREAD else ""
    return f"none of wav, flac, ogg, but {found}{remedy}"
