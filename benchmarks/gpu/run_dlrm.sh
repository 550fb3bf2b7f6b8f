#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Measures weak scaling of DLRM on 1 and 2 GPUs of one host: one rank per GPU, and the
# same number of samples for each rank. Run it from the repository's root, with the wheel,
# a TensorFlow with GPU support and Horovod installed for $PYTHON:
#
#   benchmarks/gpu/run_dlrm.sh [RANKS]...
#
# Without arguments: 1 2, as far as there are GPUs. Environment variables:
#
#   $THREADS     threads of a rank (default: the processors divided by the GPUs)
#   $BATCHES     samples per rank (default "16384 65536")
#   $DIM         floats per row (128)
#   $EXCHANGES   what carries lookups between ranks (nccl)
#   $IDS         memory of the ids: --ids of dlrm_ranks.py (here, which is CPU memory).
#                With several, as in "here fetched there", the last lines report
#                whether their losses agree.
#   $POLICIES    --policy of policies.py, one after another ("none counter step_evict")
#   $FLAGS       more flags; --interaction=matmul computes the dot products with
#                TensorFlow's ops
#   $TF32=1      allows TF32 for products of float32
#
# "scaling" is the time of one rank divided by the time of this number of ranks. "sparse"
# is a step of lookups alone, "dense" a step of the model with pooled rows replaced by
# constants. Their sum may exceed "whole", in which the two overlap.
set -u -o pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.build/gpu_dlrm}
mkdir -p "$out"
python=${PYTHON:-.venv/bin/python}
gpus=$(nvidia-smi -L | wc -l)
threads=${THREADS:-$(($(nproc) / (gpus > 0 ? gpus : 1)))}
if [[ ${TF32:-} == 1 ]]; then export NVIDIA_TF32_OVERRIDE=1; fi
: >"$out/gpu_dlrm.json"

for batch in ${BATCHES:-16384 65536}; do
  for ranks in ${*:-1 2}; do
    if ((ranks > gpus)); then
      echo "skipped: $ranks ranks, this machine has $gpus GPUs"
      continue
    fi
    for exchange in ${EXCHANGES:-nccl}; do
      for ids in ${IDS:-here}; do
        for policy in ${POLICIES:-none}; do
          timeout "${LIMIT_S:-200}" $python -m horovod.runner.launch -np "$ranks" \
            -H "localhost:$ranks" $python benchmarks/dlrm_ranks.py --batch="$batch" \
            --dim="${DIM:-128}" --exchange="$exchange" --threads="$threads" \
            --ids="$ids" --policy="$policy" --steps="${STEPS:-30}" ${FLAGS:-} \
            >"$out/stdout.txt" 2>"$out/stderr.txt" || {
              echo "failed: $ranks ranks, batch $batch, $exchange, ids $ids, $policy"
              grep -h "Error" "$out/stdout.txt" "$out/stderr.txt" | tail -5
              tail -5 "$out/stderr.txt"
            }
          sed 's/^\[[0-9]*\]<stdout>://' "$out/stdout.txt" | grep '^{' \
            >>"$out/gpu_dlrm.json"
        done
      done
      # A single rank exchanges nothing.
      if ((ranks == 1)); then break; fi
    done
  done
done
$python benchmarks/dlrm_ranks_table.py "$out/gpu_dlrm.json"
echo "$threads threads for each rank, TF32: ${TF32:-0}"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort -u
