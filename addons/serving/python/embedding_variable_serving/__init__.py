# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network server for SavedModels with embedding variables: see `main`."""

import embedding_variable

# The wheels of one release have one version; TensorFlow's version follows it in the other.
__version__ = embedding_variable.__version__.partition("+")[0]
