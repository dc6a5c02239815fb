"""Floor 2: pictures of a space for its report: two maps, neighbours, and what the audit wants looked at.

``maps`` places vectors, ``nearest`` finds neighbours, ``lists`` reads the audit's lists, ``sprites`` holds thumbnails;
``build`` makes all of it. No torch is needed and no modality is known here: a sample's picture is
``Shards.thumbnail``.
"""
