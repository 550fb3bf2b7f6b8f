# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DataReaderParams, Input and the sparse inputs: where samples come from, and their shape."""

import collections
import numbers

from hugectr.api import enums
from hugectr.api import printing

_READER = "hugectr.DataReaderParams"
_SPARSE = "hugectr.DataReaderSparseParam"
_INPUT = "hugectr.Input"

# Name of the tensor that holds several labels side by side.
COMBINED = "combined_multi_label"

# Arguments of DataReaderParams with an effect in some formats only: their formats, and
# their defaults.
_OF_FORMATS = {
    "async_param": (("RawAsync",), None),
    "cache_eval_data": (("Raw", "RawAsync"), 0),
    "check_type": (("Norm",), enums.Check_t.Non),
    "eval_num_samples": (("Raw", "RawAsync"), 0),
    "float_label_dense": (("Raw",), False),
    "num_samples": (("Raw", "RawAsync"), 0),
    "slot_size_array": (("Parquet", "Raw", "RawAsync"), []),
}

_AsyncParam = collections.namedtuple(
    "AsyncParam", ["num_threads", "num_batches_per_thread", "max_num_requests_per_thread",
                   "io_depth", "io_alignment", "shuffle", "aligned_type", "is_dense_float",
                   "multi_hot_reader"])


def AsyncParam(  # pylint: disable=invalid-name
    num_threads=16, num_batches_per_thread=4, io_block_size=512000, io_depth=4,
    io_alignment=512, shuffle=False, aligned_type=enums.Alignment_t.Non,
    multi_hot_reader=False, is_dense_float=True, max_num_requests_per_thread=None):
  """Returns settings of the reader RawAsync.

  Only multi_hot_reader and is_dense_float have an effect. A value of the others that is
  not the default is reported once.

  Args:
    num_threads: int.
    num_batches_per_thread: int.
    io_block_size: int; later versions name it max_num_requests_per_thread.
    io_depth: int.
    io_alignment: int.
    shuffle: bool. Training batches come in a random order in any case.
    aligned_type: member of Alignment_t.
    multi_hot_reader: bool; True: a sample has nnz_per_slot keys in each slot. All
      sparse inputs with several keys per slot then need is_fixed_length.
    is_dense_float: bool, whether labels and dense features of the file are float32.
    max_num_requests_per_thread: int; None: io_block_size.
  """
  printing.without_effect("hugectr.AsyncParam", {
      "num_threads": (num_threads, 16), "io_depth": (io_depth, 4),
      "num_batches_per_thread": (num_batches_per_thread, 4),
      "io_block_size": (io_block_size, 512000), "io_alignment": (io_alignment, 512),
      "shuffle": (shuffle, False), "aligned_type": (aligned_type, enums.Alignment_t.Non),
      "max_num_requests_per_thread": (max_num_requests_per_thread, None)})
  requests = (io_block_size if max_num_requests_per_thread is None else
              max_num_requests_per_thread)
  return _AsyncParam(num_threads, num_batches_per_thread, requests, io_depth, io_alignment,
                     shuffle, aligned_type, is_dense_float, bool(multi_hot_reader))


class DataSourceParams(object):
  """A file system; only local files can be read.

  Args:
    source: member of FileSystemType_t.
    server: string.
    port: int.
  """

  def __init__(self, source=enums.FileSystemType_t.Local, server="localhost", port=9000):
    self.source, self.server, self.port = source, server, port

  def check(self, where):
    """Raises NotImplementedError for a remote file system."""
    kind = enums.check("hugectr.DataSourceParams", "source", self.source,
                       enums.FileSystemType_t)
    if kind != "Local":
      raise NotImplementedError("%s: data_source_params: this package does not read %s; copy "
                                "the files to a local folder" % (where, kind))


class DataReaderParams(object):
  """Location and format of samples.

  An argument that has no effect in the format is reported once.

  Args:
    data_reader_type: member of DataReaderType_t.
    source: path of a file list (Norm, Parquet) or file (Raw); with an embedding training
      cache, a list of paths.
    keyset: with an embedding training cache, a path or list of paths of files with a
      source's keys.
    eval_source: path.
    check_type: member of Check_t, of Norm files.
    cache_eval_data: int, evaluation batches of a Raw file to keep in memory.
    num_samples: int, samples of a Raw file.
    eval_num_samples: int, samples of a Raw evaluation file.
    float_label_dense: bool, whether a Raw file's labels and dense features are float32.
    read_file_sequentially: bool, without effect: batches have the files' order.
    num_workers: int, reading threads.
    slot_size_array: list of the number of keys per slot, of Parquet and Raw: the sizes of
      the previous slots are added to keys.
    data_source_params: DataSourceParams.
    async_param: AsyncParam, of RawAsync.

  Raises:
    ValueError, TypeError: an argument is invalid.
    NotImplementedError: data_source_params is a remote file system.
  """

  def __init__(self, data_reader_type, source, keyset="", eval_source="", check_type=None,
               cache_eval_data=0, num_samples=0, eval_num_samples=0, float_label_dense=False,
               read_file_sequentially=False, num_workers=12, slot_size_array=(),
               data_source_params=None, async_param=None):
    self.data_reader_type = data_reader_type
    self._kind = enums.check(_READER, "data_reader_type", data_reader_type,
                             enums.DataReaderType_t)
    self.source = [source] if isinstance(source, str) else list(source)
    self.keyset = ([keyset] if keyset else []) if isinstance(keyset, str) else list(keyset)
    self.eval_source = eval_source
    for name, paths in (("source", self.source), ("eval_source", [eval_source])):
      if not paths or not all(isinstance(p, str) and p for p in paths):
        raise ValueError("%s: %s: expected a path, got %r" % (_READER, name,
                                                              getattr(self, name)))
    if check_type is None and self._kind == "Norm":
      raise TypeError("%s: check_type is missing, a member of hugectr.Check_t" % _READER)
    self.check_type = enums.Check_t.Non if check_type is None else check_type
    enums.check(_READER, "check_type", self.check_type, enums.Check_t)
    self.cache_eval_data = cache_eval_data
    self.num_samples, self.eval_num_samples = num_samples, eval_num_samples
    self.float_label_dense = float_label_dense
    self.num_workers = num_workers
    self.slot_size_array = list(slot_size_array)
    if data_source_params is not None:
      data_source_params.check(_READER)
    self.async_param = async_param or AsyncParam()
    printing.without_effect(_READER, {"read_file_sequentially": (read_file_sequentially,
                                                                 False)})
    for name, (kinds, default) in sorted(_OF_FORMATS.items()):
      value = async_param if name == "async_param" else getattr(self, name)
      if self._kind not in kinds and value != default:
        printing.once("%s: %s has no effect on %s" % (_READER, name, self._kind))

  def clause(self):
    """Returns keys of a configuration's Data."""
    found = {"format": "Raw" if self._kind == "RawAsync" else self._kind,
             "source": self.source[0], "eval_source": self.eval_source,
             "num_workers": self.num_workers, "cache_eval_data": self.cache_eval_data}
    if self._kind == "Norm":
      found["check"] = "Sum" if self.check_type == enums.Check_t.Sum else "None"
    if found["format"] == "Raw":
      found.update(num_samples=self.num_samples, eval_num_samples=self.eval_num_samples,
                   float_label_dense=bool(self.float_label_dense))
      if self._kind == "RawAsync":
        found["float_label_dense"] = bool(self.async_param.is_dense_float)
    # Norm files have keys that differ between slots.
    if self.slot_size_array and self._kind != "Norm":
      found["slot_size_array"] = self.slot_size_array
    return found


class DataReaderSparseParam(object):
  """A sparse input: some consecutive slots of the data.

  Args:
    top_name: string. In version 3.0's form, a member of DataReaderSparse_t stands first,
      then follow max_feature_num, max_nnz and slot_num; Input's `sparse_names` has the
      name.
    nnz_per_slot: int, or list of an int per slot: keys of a slot and sample at most.
    is_fixed_length: bool. In Raw files, True: each sample has nnz_per_slot keys in a
      slot; False: one. Without effect in other files: slots may have fewer keys.
    slot_num: int.

  Raises:
    TypeError, ValueError: an argument is invalid.
  """

  def __init__(self, *args, **kwargs):
    is_old = "type" in kwargs or (args and isinstance(args[0], enums.DataReaderSparse_t))
    self._take(*args, **kwargs) if not is_old else self._take_old(*args, **kwargs)

  def _take(self, top_name, nnz_per_slot, is_fixed_length, slot_num):
    self.top_name, self.slot_num = top_name, self._count("slot_num", slot_num)
    self.is_fixed_length = bool(is_fixed_length)
    if isinstance(nnz_per_slot, (list, tuple)):
      self.nnz_per_slot = [self._count("nnz_per_slot", n) for n in nnz_per_slot]
      if len(self.nnz_per_slot) != self.slot_num:
        raise ValueError("%s: '%s': nnz_per_slot: expected %d numbers, one per slot, got %d" %
                         (_SPARSE, top_name, self.slot_num, len(self.nnz_per_slot)))
    else:
      self.nnz_per_slot = self._count("nnz_per_slot", nnz_per_slot)

  def _take_old(self, type, max_feature_num, max_nnz, slot_num):  # pylint: disable=redefined-builtin
    enums.check(_SPARSE, "type", type, enums.DataReaderSparse_t)
    self.top_name, self.slot_num = "", self._count("slot_num", slot_num)
    self.is_fixed_length = False
    self.max_feature_num = self._count("max_feature_num", max_feature_num)
    self.max_nnz = self._count("max_nnz", max_nnz)
    self.nnz_per_slot = None

  @staticmethod
  def _count(name, value):
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
      raise ValueError("%s: %s: expected an integer of at least 1, got %r" %
                       (_SPARSE, name, value))
    return int(value)

  def clause(self, name=""):
    """Returns an item of a configuration's `sparse`.

    Args:
      name: string, the tensor's name if top_name is empty.
    """
    found = {"top": self.top_name or name, "slot_num": self.slot_num}
    if self.nnz_per_slot is None:
      found.update(max_feature_num_per_sample=self.max_feature_num, max_nnz=self.max_nnz)
    else:
      found.update(nnz_per_slot=self.nnz_per_slot, is_fixed_length=self.is_fixed_length)
    return found


class Input(object):
  """The tensors of a sample: labels, dense features, keys.

  Several labels are columns of the data in the alphabetical order of their names.

  Args:
    label_dim: int. With several labels: label_dims, a list.
    label_name: string. With several labels: label_names, a list.
    dense_dim: int of at least 0.
    dense_name: string.
    data_reader_sparse_param_array: list of DataReaderSparseParam.
    label_dims: list of ints.
    label_names: list of strings.
    label_weights: list of numbers, weights of the labels' losses; `Model.compile` can
      replace some of them.
    sparse_names: list of strings, names of sparse inputs in version 3.0's form.

  Raises:
    TypeError, ValueError: an argument is missing or invalid.
  """

  def __init__(self, label_dim=None, label_name=None, dense_dim=None, dense_name=None,
               data_reader_sparse_param_array=None, label_dims=None, label_names=None,
               label_weights=None, sparse_names=None):
    for name, value in (("dense_dim", dense_dim), ("dense_name", dense_name),
                        ("data_reader_sparse_param_array", data_reader_sparse_param_array)):
      if value is None:
        raise TypeError("%s: %s is missing" % (_INPUT, name))
    if isinstance(label_dim, (list, tuple)):
      label_dim, label_dims = None, label_dim
    if isinstance(label_name, (list, tuple)):
      label_name, label_names = None, label_name
    if (label_dim is None) == (label_dims is None) or (
        label_name is None) == (label_names is None) or (
            (label_dim is None) != (label_name is None)):
      raise TypeError("%s: expected label_dim and label_name, or label_dims and "
                      "label_names" % _INPUT)
    self.label_dims = [label_dim] if label_dims is None else list(label_dims)
    self.label_names = [label_name] if label_names is None else list(label_names)
    self.label_weights = None if label_weights is None else list(label_weights)
    for name, values in (("label_dims", self.label_dims),
                         ("label_weights", self.label_weights)):
      if values is not None and len(values) != len(self.label_names):
        raise ValueError("%s: %s: expected %d numbers, one per label, got %d" %
                         (_INPUT, name, len(self.label_names), len(values)))
    for dim in self.label_dims:
      if isinstance(dim, bool) or not isinstance(dim, numbers.Integral) or dim < 1:
        raise ValueError("%s: label_dim: expected an integer of at least 1, got %r" %
                         (_INPUT, dim))
    self.dense_dim, self.dense_name = dense_dim, dense_name
    self.sparse = list(data_reader_sparse_param_array)
    self.sparse_names = list(sparse_names or [""] * len(self.sparse))
    for k, param in enumerate(self.sparse):
      if not isinstance(param, DataReaderSparseParam):
        raise TypeError("%s: data_reader_sparse_param_array[%d]: expected a "
                        "hugectr.DataReaderSparseParam, got %r" % (_INPUT, k, param))
    if len(self.sparse_names) != len(self.sparse):
      raise ValueError("%s: sparse_names: expected %d names, got %d" %
                       (_INPUT, len(self.sparse), len(self.sparse_names)))

  def labels(self):
    """Returns [(name, dim)] of the labels in the order of the data's columns."""
    found = list(zip(self.label_names, self.label_dims))
    if found != sorted(found):
      printing.once("%s: label_names %s are not in alphabetical order: columns of the data "
                    "belong to %s, in this order" % (
                        _INPUT, self.label_names, [name for name, _ in sorted(found)]))
    return sorted(found)

  def weights(self):
    """Returns a dict from a label's name to the weight of its loss, empty if not given."""
    return dict(zip(self.label_names, self.label_weights or []))

  def clauses(self, reader):
    """Returns the clauses of the data, and of the Slice that separates several labels.

    Args:
      reader: DataReaderParams.

    Raises:
      ValueError: a sparse input does not fit the reader.
    """
    if reader.async_param.multi_hot_reader:
      for param in self.sparse:
        if param.nnz_per_slot not in (None, 1) and not param.is_fixed_length:
          raise ValueError("%s: '%s': multi_hot_reader needs is_fixed_length=True for "
                           "nnz_per_slot=%r" % (_INPUT, param.top_name, param.nnz_per_slot))
    labels = self.labels()
    label = {"top": labels[0][0] if len(labels) == 1 else COMBINED,
             "label_dim": sum(dim for _, dim in labels)}
    data = dict(reader.clause(), type="Data", label=label,
                dense={"top": self.dense_name, "dense_dim": self.dense_dim},
                sparse=[param.clause(name) for param, name in zip(self.sparse,
                                                                  self.sparse_names)])
    if len(labels) == 1:
      return [data]
    ranges, at = [], 0
    for _, dim in labels:
      ranges.append([at, at + dim])
      at += dim
    return [data, {"type": "Slice", "name": COMBINED + "_slice", "bottom": COMBINED,
                   "top": [name for name, _ in labels], "ranges": ranges}]
