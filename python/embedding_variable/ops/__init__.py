# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Python wrappers and gradients of the ops in libembedding_variable.so.

docs/design/0001-ops.md lists the ops. Importing this package loads the library and
registers every gradient.
"""

from embedding_variable.ops import apply_ops
from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import gather_ops
from embedding_variable.ops import handle_ops
from embedding_variable.ops import lookup_sparse_ops
from embedding_variable.ops import presence_ops
from embedding_variable.ops import row_ops
