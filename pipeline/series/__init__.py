"""Series of measurements: files of channels over time to one length (``contract``), and pictures of them."""

from pipeline.series.contract import Series

__all__ = ["Series"]
