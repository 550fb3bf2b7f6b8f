# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""HugeCTR's converter to ONNX, which this package does not have.

Scripts that import it run; `hugectr2onnx.converter.convert` raises an error that names what
to use instead.
"""

from hugectr2onnx import converter

__all__ = ["converter"]
