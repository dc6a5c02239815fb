"""The library: imports go down only (spec, families, contrast, space)."""
