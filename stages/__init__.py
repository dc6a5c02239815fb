"""One thin module a DVC stage, called as ``python -m stages.STAGE NAME``."""
