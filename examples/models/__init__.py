# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Click-through models: each module has `tables(dim)` and `logits(numeric, embeddings)`."""

from models import dcnv2
from models import deepfm
from models import dlrm
from models import wdl

MODELS = {"dcnv2": dcnv2, "deepfm": deepfm, "dlrm": dlrm, "wdl": wdl}
