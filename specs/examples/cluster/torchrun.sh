#!/usr/bin/env bash
# One training on several machines that see this folder under one path (NFS, Lustre). Run it on every machine, with the
# same NODES and MEETING and its own NODE; the first one runs the dataflow, the others lend their ranks to its training:
#
#   NODES=2 NODE=0 MEETING=node1:29400 bash specs/examples/cluster/torchrun.sh NAME
#   NODES=2 NODE=1 MEETING=node1:29400 bash specs/examples/cluster/torchrun.sh NAME
#
# PROCESSES: ranks of this machine (default: one a GPU). TARGETS: what DVC makes (default: everything).
set -euo pipefail
name=${1:?usage: NODES=2 NODE=0 MEETING=host:port bash torchrun.sh NAME}
: "${NODES:?}" "${NODE:?}" "${MEETING:?}"
processes=${PROCESSES:-$(python -c 'import torch; print(max(1, torch.cuda.device_count()))')}

if [ "$NODE" = 0 ]; then
    export LATENT_NODES=$NODES LATENT_MEETING=$MEETING LATENT_PROCESSES=$processes
    # shellcheck disable=SC2086
    exec dvc repro ${TARGETS:-}
fi
# waits, a day at most, until the first machine has come to the training of NAME
exec torchrun --nnodes "$NODES" --node-rank "$NODE" --nproc-per-node "$processes" \
    --master-addr "${MEETING%:*}" --master-port "${MEETING##*:}" --rdzv-conf timeout=86400 -m stages.pretrain "$name"
