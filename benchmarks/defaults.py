# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters that all benchmarks share, so that their figures can be compared.

The training benchmarks use 26 tables (Criteo's number of categorical columns), batch
4096, one or ten ids per sample and table, and Adagrad.
"""

import dataclasses

TABLES = 26
BATCH = 4096
LEARNING_RATE = 0.01
ZIPF_EXPONENT = 1.05
ZIPF_ROWS = 200 * 1000

# Uniform ids are drawn from 2 M rows per table at dim 16. With Adagrad's slot that is 26
# x 2 M x 128 bytes = 6.7 GB. Dim 64 has a quarter of the rows and thus the same number of
# bytes, because 27 GB do not fit the machines that this benchmark is meant for.
UNIFORM_ROWS_AT_DIM_16 = 2 * 1000 * 1000

DIMS = (16, 64)
HOTNESS = (1, 10)
DISTRIBUTIONS = ("zipf", "uniform")

# How a graph looks up its rows.
STOCK = "stock"            # tf.Variable + tf.nn.embedding_lookup_sparse
RESOURCE = "resource"      # the same with use_resource=True
EV_SOK = "ev_sok"          # embedding variables + sok.lookup_sparse, one call
EV_NN = "ev_nn"            # embedding variables + tf.nn.embedding_lookup_sparse
VARIANTS = (STOCK, EV_SOK, EV_NN)
ALL_VARIANTS = (STOCK, RESOURCE, EV_SOK, EV_NN)

# The dense layers after the lookups.
SUM_TOWER = "sum"          # loss = 2 * sum of all outputs: hardly any dense work
TOTAL_TOWER = "total"      # loss = 2 * sum of one total per output: few dense ops
DLRM_TOWER = "dlrm"        # pairwise dot products and a 256-128-1 MLP
TOWERS = (SUM_TOWER, TOTAL_TOWER, DLRM_TOWER)


@dataclasses.dataclass(frozen=True)
class Workload:
  """One configuration of the training benchmark.

  Attributes:
    distribution: "zipf" or "uniform", of the ids over a table's rows.
    hotness: ids per sample and table.
    dim: floats per row.
    tower: one of TOWERS.
    tables, batch: number of tables, samples per step.
    rows: rows per table; 0 takes the default of the distribution and dim.
  """

  distribution: str
  hotness: int
  dim: int
  tower: str = SUM_TOWER
  tables: int = TABLES
  batch: int = BATCH
  rows: int = 0

  @property
  def rows_per_table(self):
    if self.rows:
      return self.rows
    if self.distribution == "zipf":
      return ZIPF_ROWS
    return UNIFORM_ROWS_AT_DIM_16 * 16 // self.dim

  @property
  def name(self):
    name = "%s_hot%d_dim%d" % (self.distribution, self.hotness, self.dim)
    return name if self.tower == SUM_TOWER else name + "_" + self.tower


def training_workloads():
  """Returns the workloads of `make bench`: each parameter varied, and a realistic
  tower."""
  workloads = [
      Workload(distribution=distribution, hotness=hotness, dim=dim)
      for distribution in DISTRIBUTIONS
      for hotness in HOTNESS
      for dim in DIMS
  ]
  workloads.append(
      Workload(distribution="zipf", hotness=1, dim=16, tower=DLRM_TOWER))
  return workloads
