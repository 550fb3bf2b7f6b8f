# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embedding tables served inside a TensorFlow 1.15 graph.

  import hierarchical_parameter_server as hps

  layer = hps.LookupLayer(model_name="m", table_id=0, emb_vec_size=16,
                          emb_vec_dtype=tf.float32, ps_config_file="ps.json",
                          global_batch_size=1024)
  rows = layer(ids)

`Init`, `LookupLayer`, `SparseLookupLayer` and `__version__` have the names of NVIDIA's
package; the others exist only in this one. The guide is
docs/inference_parameter_server.md.
"""

from hierarchical_parameter_server._lib import library_path
from hierarchical_parameter_server._lib import load as _load
from hierarchical_parameter_server.initialization import Init
from hierarchical_parameter_server.layers import LookupLayer
from hierarchical_parameter_server.layers import SparseLookupLayer
from hierarchical_parameter_server.producer import Producer
from hierarchical_parameter_server.prometheus import serve_metrics
from hierarchical_parameter_server.published import PublicationSender
from hierarchical_parameter_server.serving import add_models
from hierarchical_parameter_server.serving import check
from hierarchical_parameter_server.serving import metrics
from hierarchical_parameter_server.serving import notes
from hierarchical_parameter_server.serving import push_rows
from hierarchical_parameter_server.serving import reload_model
from hierarchical_parameter_server.serving import remove_model
from hierarchical_parameter_server.serving import start
from hierarchical_parameter_server.serving import stop
from hierarchical_parameter_server.version import version as _version

__version__ = _version()

__all__ = [
    "Init", "LookupLayer", "Producer", "PublicationSender", "SparseLookupLayer", "__version__",
    "add_models", "check", "library_path", "metrics", "notes", "push_rows", "reload_model", "remove_model",
    "serve_metrics", "start", "stop"
]

# A graph loaded from a file needs the ops to be registered.
_load()
