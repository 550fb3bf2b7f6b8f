// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The format in which rows are stored by the parameter server and in files:
// float32, or fewer bytes.
//
//   float32  dim floats.
//   float16  dim numbers of 16 bits, rounded to nearest, ties to even.
//   uint8    dim bytes q, then at the row's end two float16, scale and offset.
//            A value is q * scale + offset, each operation rounded to float32.
//
// A stored row is a whole number of 4-byte words; there are zeros before the
// row's end, or in a uint8 row before its scale, to fill the last word. All
// stores copy rows as words, `width` floats, and never compute with them. Rows
// of a checkpoint's tensor (PackFileRows) have no such zeros.
//
// uint8. With the offset the largest float16 that is not above the row's
// minimum, and the scale the smallest float16 that is not below (maximum -
// offset) / 255, no value is clipped; q is the nearest number. The error of a
// value is at most half the scale, (maximum - minimum) / 510 for a usual row,
// plus rounding.

#ifndef KERNELS_ENGINE_BASE_ROW_FORMAT_H_
#define KERNELS_ENGINE_BASE_ROW_FORMAT_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/host_device.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

enum class RowType { kFloat32, kFloat16, kUint8 };

struct RowFormat {
  RowFormat() = default;
  // Implicit: a number of floats is the width of a float32 table.
  RowFormat(int dim, RowType type = RowType::kFloat32)  // NOLINT
      : dim(dim), type(type) {}

  int dim = 0;  // numbers of a row
  RowType type = RowType::kFloat32;

  // Words of a stored row.
  int width() const {
    switch (type) {
      case RowType::kFloat16:
        return (dim + 1) / 2;
      case RowType::kUint8:
        return (dim + 3) / 4 + 1;
      default:
        return dim;
    }
  }
  bool is_packed() const { return type != RowType::kFloat32; }
  bool operator==(const RowFormat& other) const {
    return dim == other.dim && type == other.type;
  }
  bool operator!=(const RowFormat& other) const { return !(*this == other); }
};

// "float32", "float16" or "uint8".
const char* RowTypeName(RowType type);
// Returns false if there is no such type.
bool ParseRowType(const std::string& name, RowType* type);
// "64 floats", "64 numbers of type uint8".
std::string Describe(const RowFormat& format);
// Texts by which stores record a format: its width, and of a packed format type
// and dim too, "64" or "17 uint8 64". Parse returns false for another text.
std::string FormatText(const RowFormat& format);
bool ParseFormatText(const std::string& text, RowFormat* format);

// Stores rows: stored + i * width is row i, rows + i * dim. InvalidArgument
// names the first key whose row has an infinite number or NaN, also after
// rounding to float16, or whose minimum is below -65504, the smallest offset;
// `stored` is undefined then.
Status PackRows(const RowFormat& format, Span<const int64_t> keys,
                    const float* rows, float* stored);
// Reads a stored row, or `count` of them.
void UnpackRow(const RowFormat& format, const float* stored, float* row);
void UnpackRows(const RowFormat& format, int64_t count, const float* stored,
                float* rows, Parallel* parallel);

// Bytes of a row in a checkpoint's tensor.
inline int64_t FileRowBytes(const RowFormat& format) {
  if (format.type == RowType::kUint8) return format.dim + 4;
  return int64_t{format.dim} * (format.type == RowType::kFloat16 ? 2 : 4);
}
// The same as PackRows and UnpackRows for a checkpoint's tensor, [n, bytes of a
// row]. May throw std::bad_alloc.
Status PackFileRows(const RowFormat& format, Span<const int64_t> keys,
                    const float* rows, char* stored);
void UnpackFileRows(const RowFormat& format, int64_t count, const char* stored,
                    float* rows);

// Number j of a stored row.
EV_HOST_DEVICE float UnpackedFloat16(const void* stored, int j) {
  return FromFloat16(static_cast<const uint16_t*>(stored)[j]);
}
EV_HOST_DEVICE float UnpackedUint8(uint8_t q, float scale, float offset) {
  return static_cast<float>(q) * scale + offset;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_ROW_FORMAT_H_
