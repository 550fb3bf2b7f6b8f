# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Protocol buffer classes of the interfaces, made at run time in a private pool.

No generated code means one wheel for protobuf 3.19 to 7. The pool is private because the
default one refuses a second definition of these messages: tensorflow_serving may be
imported in the same process.
"""

import re

from google.protobuf import any_pb2
from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory
from google.protobuf import wrappers_pb2
import tensorflow as tf

from embedding_variable_serving import definitions

_FIELD = re.compile(r"(repeated )?(?:map<(?P<map>[\w.]+)>|(?P<type>[\w.]+)) "
                    r"(?P<name>\w+) = (?P<number>\d+)$")
_SCALARS = {name: getattr(descriptor_pb2.FieldDescriptorProto, "TYPE_" + name.upper())
            for name in ("bool", "bytes", "double", "float", "int32", "int64", "string",
                         "uint32", "uint64")}
_Field = descriptor_pb2.FieldDescriptorProto


def _set_type(field, kind, package):
  if kind in _SCALARS:
    field.type = _SCALARS[kind]
    return
  full = kind if "." in kind else "%s.%s" % (package, kind)
  field.type = _Field.TYPE_ENUM if full in definitions.ENUMS else _Field.TYPE_MESSAGE
  field.type_name = "." + full


def _add_field(message, package, text, group=None):
  found = _FIELD.match(text.strip())
  field = message.field.add(name=found.group("name"), number=int(found.group("number")),
                            label=_Field.LABEL_OPTIONAL)
  if group is not None:
    field.oneof_index = group
  if found.group(1) or found.group("map"):
    field.label = _Field.LABEL_REPEATED
  if not found.group("map"):
    _set_type(field, found.group("type"), package)
    return
  # A map is a repeated message with fields key and value.
  entry = message.nested_type.add(
      name="".join(part.capitalize() for part in field.name.split("_")) + "Entry")
  entry.options.map_entry = True
  entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
  value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
  _set_type(value, found.group("map"), package)
  field.type = _Field.TYPE_MESSAGE
  field.type_name = ".%s.%s.%s" % (package, message.name, entry.name)


def _parts(text, separator=";"):
  return [part.strip() for part in text.split(separator) if part.strip()]


def _file(package, contents, dependencies):
  """Returns the FileDescriptorProto of a package of definitions.PACKAGES."""
  file = descriptor_pb2.FileDescriptorProto(
      name="embedding_variable_serving/%s.proto" % package, package=package,
      syntax="proto3", dependency=dependencies)
  for name, text in contents.items():
    if "%s.%s" % (package, name) in definitions.ENUMS:
      enum = file.enum_type.add(name=name)
      for part in _parts(text):
        value, number = part.split(" = ")
        enum.value.add(name=value, number=int(number))
      continue
    message = file.message_type.add(name=name)
    for part in _parts(text):
      if part.startswith("one "):
        group, fields = part[len("one "):].split(": ")
        message.oneof_decl.add(name=group)
        for field in _parts(fields, "|"):
          _add_field(message, package, field, len(message.oneof_decl) - 1)
      else:
        _add_field(message, package, part)
  return file


def _add_with_dependencies(pool, file, added):
  """Copies a file of the default pool, after the files that it imports."""
  if file.name in added:
    return
  added.append(file.name)
  for dependency in file.dependencies:
    _add_with_dependencies(pool, dependency, added)
  pool.AddSerializedFile(file.serialized_pb)


def _make_pool():
  pool = descriptor_pool.DescriptorPool()
  added = []
  for cls in (any_pb2.Any, wrappers_pb2.Int64Value, tf.compat.v1.MetaGraphDef,
              tf.train.Example, type(tf.compat.v1.make_tensor_proto(0))):
    _add_with_dependencies(pool, cls.DESCRIPTOR.file, added)
  files = [_file(package, contents, added)
           for package, contents in definitions.PACKAGES.items()]
  # A package may use enums of any other.
  for file in sorted(files, key=lambda file: len(file.message_type)):
    file.dependency.extend(
        other.name for other in files if not other.message_type and other is not file)
    pool.AddSerializedFile(file.SerializeToString())
  return pool


_POOL = _make_pool()
_FACTORY = message_factory.MessageFactory(_POOL)
_classes = {}


def message_class(name):
  """Returns the class of a message by its full name, such as "tensorflow.Example"."""
  if name not in _classes:
    descriptor = _POOL.FindMessageTypeByName(name)
    _classes[name] = (message_factory.GetMessageClass(descriptor)
                      if hasattr(message_factory, "GetMessageClass")
                      else _FACTORY.GetPrototype(descriptor))
  return _classes[name]


def serving(name):
  """Returns the class of a message of the package tensorflow.serving."""
  return message_class("tensorflow.serving." + name)


def enum_value(name, value):
  """Returns the number of an enum's value."""
  return _POOL.FindEnumTypeByName(name).values_by_name[value].number


TensorProto = message_class("tensorflow.TensorProto")
