#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Measures the same training step on 1, 2, 4, ... GPUs of one host, one rank per GPU. Run
# it from the repository's root, with the wheel installed for $PYTHON:
#
#   benchmarks/gpu/run_ranks.sh [RANKS]...
#
# Without arguments: 1 2 4, as far as there are GPUs. Environment variables:
#
#   $THREADS     threads of a rank (default: the processors divided by the GPUs)
#   $EXCHANGES   what carries lookups between ranks ("nccl memory horovod")
#   $BATCH       samples per rank (65536)
#   $HOT         ids per sample (1)
#   $DIM         floats per row (16)
#   $CONTROL=1   measures the cost of sharing the host: runs as many independent jobs of
#                one rank at once, each on its own GPU with the same number of threads.
#                Their line is "none", the jobs' mean. They run 50 times as many steps,
#                so that they overlap.
#
# "scaling" is the time of one rank divided by the time of this number of ranks; each rank
# has the same amount of work.
set -u -o pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.build/gpu_ranks}
mkdir -p "$out"
python=${PYTHON:-.venv/bin/python}
gpus=$(nvidia-smi -L | wc -l)
threads=${THREADS:-$(($(nproc) / gpus))}
: >"$out/gpu_ranks.json"

# keep RANKS EXCHANGE FILE: stores the results in a file of output with their labels.
keep() {
  sed 's/^\[[0-9]*\]<stdout>://' "$3" | grep '^{' \
    | sed "s/^{/{\"ranks\": $1, \"exchange\": \"$2\", /" >>"$out/gpu_ranks.json"
}

# measure RANKS EXCHANGE STEPS PROFILED_STEPS
measure() {
  timeout "${LIMIT_S:-120}" $python -m horovod.runner.launch -np "$1" -H "localhost:$1" \
    $python benchmarks/exchange_worker.py --storage=hbm --exchange="$2" \
    --threads="$threads" --batch="${BATCH:-65536}" --dim="${DIM:-16}" \
    --hotness="${HOT:-1}" --steps="$3" --warmup_steps=5 --profiled_steps="$4"
}

for ranks in ${*:-1 2 4}; do
  if ((ranks > gpus)); then
    echo "skipped: $ranks ranks, this machine has $gpus GPUs"
    continue
  fi
  for exchange in ${EXCHANGES:-nccl memory horovod}; do
    # A single rank exchanges nothing.
    if ((ranks == 1)); then exchange=horovod; fi
    measure "$ranks" "$exchange" "${STEPS:-12}" "${PROFILED_STEPS:-0}" \
      >"$out/stdout.txt" 2>"$out/stderr.txt" || {
        echo "failed: $ranks ranks, $exchange"
        tail -5 "$out/stderr.txt"
        continue
      }
    sed 's/^\[[0-9]*\]<stdout>://' "$out/stdout.txt" | grep -v '^{'
    keep "$ranks" "$exchange" "$out/stdout.txt"
    if ((ranks == 1)); then break; fi
  done
  if [[ ${CONTROL:-} == 1 ]] && ((ranks > 1)); then
    jobs=()
    for ((g = 0; g < ranks; ++g)); do
      CUDA_VISIBLE_DEVICES=$g measure 1 horovod $((50 * ${STEPS:-12})) 0 \
        >"$out/stdout.$g.txt" 2>"$out/stderr.$g.txt" &
      jobs+=($!)
    done
    for ((g = 0; g < ranks; ++g)); do
      wait "${jobs[$g]}" || {
        echo "failed: the job by itself on GPU $g of $ranks"
        tail -5 "$out/stderr.$g.txt"
      }
      keep "$ranks" none "$out/stdout.$g.txt"
    done
  fi
done
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort -u
echo "$threads threads for each rank"
$python - "$out/gpu_ranks.json" <<'PYTHON'
import json, sys
rows = []
for line in open(sys.argv[1]):
  row = dict(json.loads(line), jobs=1)
  last = rows[-1] if rows else row
  if row['exchange'] == 'none' and (last['ranks'], last['exchange']) == (row['ranks'], 'none') \
      and last is not row:
    # Several jobs of the control: keeps their mean.
    for key in ('step_ms', 'core_ms'):
      last[key] = (last['jobs'] * last[key] + row[key]) / (last['jobs'] + 1)
    last['jobs'] += 1
  else:
    rows.append(row)
one = [r['step_ms'] for r in rows if r['ranks'] == 1]
print('| GPUs | carried by | step ms | scaling | MB sent | core-ms |')
print('| --- | --- | --- | --- | --- | --- |')
for r in rows:
  print('| %d | %s | %.1f | %s | %.1f | %.0f |' % (
      r['ranks'], r['exchange'] if r['ranks'] > 1 else '–', r['step_ms'],
      '%.0f %%' % (100 * one[0] / r['step_ms']) if one else '–',
      r['bytes'] / 1e6, r['core_ms']))
PYTHON
