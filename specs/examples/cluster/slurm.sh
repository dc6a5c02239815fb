#!/usr/bin/env bash
# One training on several nodes under Slurm: sbatch specs/examples/cluster/slurm.sh NAME
#
# A job that is preempted, loses a node or reaches its time limit is queued again and goes on from the last checkpoint;
# the number of nodes may have changed by then. Edit the lines below for your cluster.
#SBATCH --job-name=latent
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
# One task a node; it starts a rank for each GPU. Uncomment what your cluster needs:
##SBATCH --gpus-per-node=8
##SBATCH --cpus-per-task=64
set -euo pipefail
name=${1:?usage: sbatch specs/examples/cluster/slurm.sh NAME}
cd "${SLURM_SUBMIT_DIR:?start it with sbatch}"
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export NODES=$SLURM_JOB_NUM_NODES MEETING=$first:${PORT:-29400}

again() { # two minutes before the limit: every step since the last checkpoint is lost, no more
    echo "the time is up: job $SLURM_JOB_ID is queued again"
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
}
trap again USR1

# The first node runs the dataflow and ends the others with it (--wait); they join every training until then.
# shellcheck disable=SC2016
srun --kill-on-bad-exit=1 --wait=10 bash -c '
    export NODE=$SLURM_NODEID
    if [ "$NODE" = 0 ]; then exec bash specs/examples/cluster/torchrun.sh "$0"; fi
    while true; do bash specs/examples/cluster/torchrun.sh "$0" || sleep 5; done' "$name" &
wait $!
