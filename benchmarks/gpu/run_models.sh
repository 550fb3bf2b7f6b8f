#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Compares whole models and tables on one GPU with TensorFlow's own tables. Run it from
# the repository's root, with the wheel and a TensorFlow with GPU support installed for
# $PYTHON:
#
#   benchmarks/gpu/run_models.sh [dcnv2|tables]...
#
# dcnv2: one GPU's share of HugeCTR's published setting (benchmarks/dcnv2.py), in float32
# and in TF32. It also compares TensorFlow's own tables of $STOCK_ROWS rows with ours of
# the same size. tables: lookup and update of 26 tables (benchmarks/stock_vs_ev.py) for
# $CASES, given as DIM:HOT ("16:1 128:1 16:10"), with $ROWS (500000) rows per table.
# Without arguments: both. Prints one line of JSON for each measurement; the last block is
# the tables.
set -u -o pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-.build/gpu_models}
mkdir -p "$out"
python=${PYTHON:-.venv/bin/python}
threads=${THREADS:-0}

# run FILE PROGRAM ARGUMENTS...: appends lines of JSON to FILE, or reports the failure.
run() {
  local file=$1
  shift
  timeout "${LIMIT_S:-300}" $python "$@" >"$out/stdout.txt" 2>"$out/stderr.txt" || {
    echo "failed: $*"
    tail -5 "$out/stderr.txt"
  }
  grep '^{' "$out/stdout.txt" | tee -a "$file"
}

dcnv2() {
  local rows=${STOCK_ROWS:-2000000}
  run "$out/dcnv2.json" benchmarks/dcnv2.py --threads="$threads" ${FLAGS:-}
  NVIDIA_TF32_OVERRIDE=1 run "$out/dcnv2.json" benchmarks/dcnv2.py \
    --graphs=whole,dense --threads="$threads" ${FLAGS:-}
  run "$out/dcnv2.json" benchmarks/dcnv2.py --graphs=whole,sparse --max_rows="$rows" \
    --threads="$threads" ${FLAGS:-}
  run "$out/dcnv2.json" benchmarks/dcnv2.py --variant=stock --graphs=whole,sparse \
    --stock_rows="$rows" --threads="$threads" ${FLAGS:-}
}

tables() {
  local dim hot variant
  for case in ${CASES:-16:1 128:1 16:10}; do
    IFS=: read -r dim hot <<<"$case"
    for variant in ev_sok stock; do
      run "$out/tables.json" benchmarks/stock_vs_ev.py --variant="$variant" \
        --storage=hbm --device=/gpu:0 --dim="$dim" --hotness="$hot" \
        --batch="${BATCH:-65536}" --rows="${ROWS:-500000}" --num_batches=4 \
        --warmup_steps=5 --min_steps=15 --min_seconds=1 --threads="$threads"
    done
  done
}

: >"$out/dcnv2.json"
: >"$out/tables.json"
for part in ${*:-dcnv2 tables}; do
  case $part in
    dcnv2 | tables) $part ;;
    *)
      echo "unknown: $part; dcnv2 or tables"
      exit 2
      ;;
  esac
done
$python - "$out/dcnv2.json" "$out/tables.json" <<'PYTHON'
import json, sys
lines = [[json.loads(line) for line in open(path)] for path in sys.argv[1:]]
if lines[0]:
  print('| DCNv2 | tables | M rows | products | step ms | M samples/s | M ids/s |')
  print('| --- | --- | --- | --- | --- | --- | --- |')
for r in lines[0]:
  print('| %s | %s | %.1f | %s | %.2f | %.2f | %.0f |' % (
      r['graph'], r['variant'], r['rows'] / 1e6, 'TF32' if r['tf32'] else 'float32',
      r['step_ms'], r['samples_per_second'] / 1e6, r['ids_per_second'] / 1e6))
if lines[1]:
  print('| 26 tables | batch | tables | forward ms | step ms |')
  print('| --- | --- | --- | --- | --- |')
for r in lines[1]:
  print('| %s | %d | %s | %.2f | %.2f |' % (
      r['workload'], r['batch'], r['variant'], r['forward']['median_ms'],
      r['step']['median_ms']))
PYTHON
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort -u
